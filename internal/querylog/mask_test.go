package querylog

import (
	"strings"
	"testing"
)

func TestPasswordsAreMasked(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"SELECT 1", "SELECT 1"},
		{"ALTER ROLE ann PASSWORD 'secret'", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD 'secret' VALID UNTIL '2030-01-01'", "ALTER ROLE ann PASSWORD '***' VALID UNTIL '2030-01-01'"},
		{"create user ann encrypted password\n\t'secret'; SELECT 'x'", "create user ann encrypted password\n\t'***'; SELECT 'x'"},
		{"CREATE ROLE a PASSWORD 'secret'; CREATE ROLE b PASSWORD 'secret' LOGIN", "CREATE ROLE a PASSWORD '***'; CREATE ROLE b PASSWORD '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD'secret'", "ALTER ROLE ann PASSWORD'***'"},
		{"ALTER ROLE ann PASSWORD 'sec''ret'x", "ALTER ROLE ann PASSWORD '***'x"},
		{`ALTER ROLE ann PASSWORD E'sec\'ret' LOGIN`, `ALTER ROLE ann PASSWORD '***' LOGIN`},
		{`ALTER ROLE ann PASSWORD e'secret\\' LOGIN`, `ALTER ROLE ann PASSWORD '***' LOGIN`},
		{`ALTER ROLE ann PASSWORD U&'secret\0041' LOGIN`, `ALTER ROLE ann PASSWORD '***' LOGIN`},
		{"ALTER ROLE ann PASSWORD $$secret$$ LOGIN", "ALTER ROLE ann PASSWORD '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD $a$secret$$secret$a$ LOGIN", "ALTER ROLE ann PASSWORD '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD 'secret'\n-- it's\n  'secret' LOGIN", "ALTER ROLE ann PASSWORD '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD /* it's /* 'x' */ */ -- '\n 'secret' LOGIN", "ALTER ROLE ann PASSWORD /* it's /* 'x' */ */ -- '\n '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD NULL", "ALTER ROLE ann PASSWORD NULL"},
		{"SELECT pg_catalog.crypt(password, $1), password FROM t", "SELECT pg_catalog.crypt(password, $1), password FROM t"},
		{"SELECT $1 = password $2", "SELECT $1 = password $2"},
		{"SET password_encryption = 'md5'", "SET password_encryption = 'md5'"},
		{"UPDATE t SET password = 'secret', n = $1 WHERE id = '5'", "UPDATE t SET password = '***', n = $1 WHERE id = '5'"},
		{"UPDATE t SET password = $1", "UPDATE t SET password = $1"},
		{"CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'a', \"password\" 'secret')", "CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'a', \"password\" '***')"},
		{"CREATE SUBSCRIPTION s CONNECTION 'host=h password=secret user=u' PUBLICATION p", "CREATE SUBSCRIPTION s CONNECTION 'host=h password='***' user=u' PUBLICATION p"},
		{"CREATE SUBSCRIPTION s CONNECTION 'host=h password=''sec ret'' user=u' PUBLICATION p", "CREATE SUBSCRIPTION s CONNECTION 'host=h password='***'"},
		// In doubt too much is missing.
		{`ALTER ROLE ann PASSWORD 'secret\'; ALTER ROLE bob PASSWORD 'secret'`, `ALTER ROLE ann PASSWORD '***'`},
		{"DO 'BEGIN EXECUTE ''ALTER ROLE ann PASSWORD ''''secret''''''; END'", "DO 'BEGIN EXECUTE ''ALTER ROLE ann PASSWORD '***'"},
		{"COMMENT ON ROLE ann IS 'the password'; ALTER ROLE ann PASSWORD 'secret' LOGIN", "COMMENT ON ROLE ann IS 'the password'***' LOGIN"},
		// Texts that are cut off.
		{"ALTER ROLE ann PASSWORD 'secret", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD 'secret''", "ALTER ROLE ann PASSWORD '***'"},
		{`ALTER ROLE ann PASSWORD E'secret\`, `ALTER ROLE ann PASSWORD '***'`},
		{"ALTER ROLE ann PASSWORD $sec", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD $$secret$", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD /* x", "ALTER ROLE ann PASSWORD /* x"},
		{"ALTER ROLE ann PASSWORD E", "ALTER ROLE ann PASSWORD E"},
		{"ALTER ROLE ann PASSWORD", "ALTER ROLE ann PASSWORD"},
	} {
		if got := string(masked([]byte(test.sql))); got != test.want {
			t.Errorf("%s\nis logged as %s\nwant         %s", test.sql, got, test.want)
		}
	}
}

// FuzzMask: whatever stands around a clause, its password is not in the log, nor is a part of
// it when the text is cut off.
func FuzzMask(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"SELECT 'password'; ", " LOGIN"}, {"/* password */", "\n'x'"}, {`SELECT '\'' = "`, "'"}, {"-- password '\n", ""}, {"password = ", ""}} {
		f.Add(seed[0], seed[1], uint16(1000))
	}
	f.Fuzz(func(t *testing.T, before, behind string, cut uint16) {
		const secret = "Hunter2"
		if strings.Contains(before+behind, "Hunt") {
			return
		}
		for _, quoted := range []string{"'Hunter2'", "E'Hunter2'", "$$Hunter2$$", "$a$Hunter2$a$", "'x''Hunter2'", "'x'\n'Hunter2'", `E'x\'Hunter2'`} {
			text := before + "PASSWORD " + quoted + behind
			text = text[:min(len(text), int(cut))]
			if got := string(masked([]byte(text))); strings.Contains(got, secret[:4]) {
				t.Errorf("%q is logged as %q", text, got)
			}
		}
	})
}
