package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/testpg"
)

// TestWhoDoesNotReadLosesNotifications, and pgebb little memory: those that do not fit are
// counted, and others hear all.
func TestWhoDoesNotReadLosesNotifications(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 5)
	slow, fast, other := connect(t, through(p, database)), connect(t, through(p, database)), connect(t, through(p, database))
	query(t, slow, "LISTEN a")
	query(t, fast, "LISTEN a")
	query(t, slow, "BEGIN") // it is given nothing while that lasts
	for i := range 20 {
		query(t, other, fmt.Sprintf("NOTIFY a, '%d'", i))
		hears(t, fast, fmt.Sprintf("a %d", i))
	}
	if got := show(t, p, "SHOW LISTENERS"); len(got) != 1 || got[0]["received"] != "20" || got[0]["dropped"] != "15" {
		t.Errorf("SHOW LISTENERS has %v", got)
	}
	query(t, slow, "COMMIT")
	hears(t, slow, "a 0", "a 1", "a 2", "a 3", "a 4")
	query(t, other, "NOTIFY a, 'later'")
	hears(t, slow, "a later")
	if n := strings.Count(p.Log(), "notifications for a client are dropped"); n != 1 || !strings.Contains(p.Log(), "5 may wait for it meanwhile: raise general.pub_sub_channel_size") {
		t.Errorf("the log says so %d times: %s", n, p.Log())
	}
}

// TestWhoReadsLosesNothingOfABurst, however few may wait for who does not; such a client hears
// those few, and then on.
func TestWhoReadsLosesNothingOfABurst(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	o := pg.Options(database, "transaction", 2)
	o.General += "pub_sub_channel_size = 100\nworkers = 1\n"
	p := testpg.Pgebb(t, o)
	slow, fast, other := connect(t, through(p, database)), connect(t, through(p, database)), connect(t, direct(pg, database))
	query(t, slow, "LISTEN a")
	query(t, fast, "LISTEN a")
	query(t, slow, "BEGIN")
	query(t, other, "NOTIFY a, '0'")
	hears(t, fast, "a 0")
	query(t, other, "NOTIFY a, '1'")
	hears(t, fast, "a 1") // by now the other, on the same loop, has declined the first
	query(t, other, "SELECT count(pg_notify('a', i::text)) FROM generate_series(2, 5000) i")
	var all []string
	for i := range 5001 {
		all = append(all, fmt.Sprintf("a %d", i))
	}
	hears(t, fast, all[2:]...)
	commitsUnheard(t, slow)
	hears(t, slow, all[:100]...)
	query(t, other, "NOTIFY a, 'later'")
	hears(t, slow, "a later")
	hears(t, fast, "a later")
	query(t, other, "SELECT count(pg_notify('a', i::text)) FROM generate_series(1, 5000) i")
	hears(t, slow, all[1:]...)
	hears(t, fast, all[1:]...)
	if got := show(t, p, "SHOW LISTENERS"); len(got) != 1 || got[0]["received"] != "10002" || got[0]["dropped"] != "4901" {
		t.Errorf("SHOW LISTENERS has %v", got)
	}
}

// TestMuchThatHasWaitedIsGivenInFull: more than a client is given before others have their turn.
func TestMuchThatHasWaitedIsGivenInFull(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := listening(t, pg, database, "transaction", 2, 10_000)
	c, d, other := connect(t, through(p, database)), connect(t, through(p, database)), connect(t, direct(pg, database))
	query(t, c, "LISTEN a")
	query(t, d, "LISTEN a")
	query(t, c, "BEGIN")
	query(t, other, "SELECT count(pg_notify('a', repeat('x', 1000) || i)) FROM generate_series(1, 900) i")
	var all []string
	for i := range 900 {
		all = append(all, fmt.Sprintf("a %s%d", strings.Repeat("x", 1000), i+1))
	}
	hears(t, d, all...) // so they have all come
	commitsUnheard(t, c)
	hears(t, c, all...)
}
