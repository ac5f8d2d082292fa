package e2e

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgebb/pgebb/frontend/frontendtest"
	"github.com/pgebb/pgebb/internal/testpg"
)

// TestTheNamesOnServersAreOutOfReach: a client that guesses what a statement of another
// is called on servers can neither look at it nor use it nor drop it.
func TestTheNamesOnServersAreOutOfReach(t *testing.T) {
	pg := testpg.ForTest(t)
	database := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(database, "transaction", 1))
	owner := connect(t, through(p, database))
	if err := owner.Say(&pgproto3.Parse{Name: "s", Query: "SELECT 'mine'"}, &pgproto3.Sync{}); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Until('Z'); err != nil {
		t.Fatal(err)
	}
	servers := query(t, owner, "SELECT name FROM pg_prepared_statements")
	if len(servers) != 1 || !strings.HasPrefix(servers[0], "__pgebb_") {
		t.Fatalf("on the server are %v", servers)
	}
	name := servers[0]
	for what, say := range map[string][]pgproto3.FrontendMessage{
		"Bind":       {&pgproto3.Bind{PreparedStatement: name}, &pgproto3.Sync{}},
		"Bind, long": {&pgproto3.Bind{DestinationPortal: strings.Repeat("p", 3000), PreparedStatement: name}, &pgproto3.Sync{}},
		"Describe":   {&pgproto3.Describe{ObjectType: 'S', Name: name}, &pgproto3.Sync{}},
		"Close":      {&pgproto3.Close{ObjectType: 'S', Name: name}, &pgproto3.Sync{}},
		"DEALLOCATE": {&pgproto3.Query{String: "DEALLOCATE " + name}},
	} {
		c := connect(t, through(p, database))
		if err := c.Say(say...); err != nil {
			t.Fatal(err)
		}
		if all := told(t, c); len(all) != 1 || (&frontendtest.Refused{Message: all[0]}).Code() != "42939" {
			t.Errorf("%s is told %q", what, frontendtest.Types(all))
		}
	}
	if err := owner.Say(&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Sync{}); err != nil {
		t.Fatal(err)
	}
	if got, err := owner.Until('Z'); err != nil || frontendtest.Types(got) != "2DCZ" {
		t.Errorf("the owner is told %q, %v", frontendtest.Types(got), err)
	}
	owner.Close()
	epilogue(t, pg, p, database, 1)
}
