package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/testpg"
)

// TestChannelsWithNamesOfOurOwnAreRefused, since nothing of them would be heard; the client goes on
// to hear what it did, and in session mode they are as any others.
func TestChannelsWithNamesOfOurOwnAreRefused(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 1, 100)
	c, other := connect(t, through(p, database)), connect(t, through(p, database))
	query(t, c, "LISTEN a")
	for _, sql := range []string{"LISTEN __pgebb_x", `LISTEN "__pgebb_"`, "LISTEN b; LISTEN __PGEBB_Y", "DO 'BEGIN LISTEN __pgebb_x; END'"} {
		if _, err := c.Query(sql); code(err) != "42939" || !strings.Contains(err.Error(), "reserved") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, channel := range []string{"__pgebb_x", "b", "a"} {
		query(t, other, "NOTIFY "+channel)
	}
	hears(t, c, "a ")
	query(t, c, "LISTEN _pgebb_x; UNLISTEN __pgebb_x")
	query(t, other, "NOTIFY _pgebb_x")
	hears(t, c, "_pgebb_x ")
	// Marks of its own, in a session that it keeps, are none of the client's doing.
	query(t, c, "SELECT pg_advisory_lock(1)")
	for _, channel := range []string{"d", "e"} {
		query(t, c, "LISTEN "+channel)
	}
	query(t, c, "SELECT pg_advisory_unlock(1)")
	c.Close()
	quiet(t, p, database)

	session := connect(t, through(listening(t, pg, database, "session", 1, 100), database))
	query(t, session, "LISTEN __pgebb_x")
	query(t, other, "NOTIFY __pgebb_x")
	hears(t, session, "__pgebb_x ")
}

// TestAClientListensToAsManyChannelsAsItMay, however long their names are, and is told if there
// are more.
func TestAClientListensToAsManyChannelsAsItMay(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 100)
	c, other := connect(t, through(p, database)), connect(t, through(p, database))
	channel := func(i int) string { return fmt.Sprintf("c%d_%s", i, strings.Repeat("x", 50)) }
	for from := 0; from < 1000; from += 250 {
		query(t, c, "BEGIN")
		for i := from; i < from+250; i++ {
			query(t, c, "LISTEN "+channel(i))
		}
		query(t, c, "COMMIT")
	}
	if _, err := c.Query("LISTEN " + channel(1000)); err == nil || !strings.Contains(err.Error(), "54000") {
		t.Errorf("one channel too many: %v", err)
	}
	for _, i := range []int{0, 500, 999} {
		query(t, other, "NOTIFY "+channel(i))
		hears(t, c, channel(i)+" ")
	}
	c.Close()
	quiet(t, p, database)
}
