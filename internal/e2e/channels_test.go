package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgebb/pgebb/internal/testpg"
)

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
