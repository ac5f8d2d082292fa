package querylog

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// logged is how a text is logged, without the quotes around it.
func logged(sql string, cut bool) string {
	s, err := strconv.Unquote(string(appendMasked(nil, []byte(sql), cut)))
	if err != nil {
		panic(err)
	}
	return s
}

func TestPasswordsAreMasked(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"ALTER ROLE ann PASSWORD 'secret'", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD 'secret' VALID UNTIL '2030-01-01'", "ALTER ROLE ann PASSWORD '***' VALID UNTIL '***'"},
		{"create user ann encrypted password\n\t'secret'; SELECT x", "create user ann encrypted password\n\t'***'; SELECT x"},
		{"CREATE ROLE a PASSWORD 'secret'; CREATE ROLE b PASSWORD 'secret' LOGIN", "CREATE ROLE a PASSWORD '***'; CREATE ROLE b PASSWORD '***' LOGIN"},
		{`ALTER ROLE ann PASSWORD E'sec\'ret' LOGIN`, `ALTER ROLE ann PASSWORD '***' LOGIN`},
		{`ALTER ROLE ann PASSWORD e'secret\\' LOGIN`, `ALTER ROLE ann PASSWORD '***' LOGIN`},
		{`ALTER ROLE ann PASSWORD U&'secret!0041' UESCAPE '!' LOGIN`, `ALTER ROLE ann PASSWORD '***' UESCAPE '***' LOGIN`},
		{"ALTER ROLE ann PASSWORD $$secret$$ LOGIN", "ALTER ROLE ann PASSWORD '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD $a$secret$$secret$a$ LOGIN", "ALTER ROLE ann PASSWORD '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD 'secret'\n-- it's secret\n  'secret' LOGIN", "ALTER ROLE ann PASSWORD '***'\n/***/\n  '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD /* it's /* 'x' */ */ -- '\n 'secret' LOGIN", "ALTER ROLE ann PASSWORD /***/ /***/\n '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD\u00a0'secret'", "ALTER ROLE ann PASSWORD\u00a0'***'"},
		{"ALTER ROLE ann PASSWORD NULL", "ALTER ROLE ann PASSWORD NULL"},
		{"ALTER ROLE ann PASSWORD $1", "ALTER ROLE ann PASSWORD $1"},
		{"CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'a', \"password\" 'secret')", "CREATE USER MAPPING FOR a SERVER s OPTIONS (user '***', \"password\" '***')"},
		{"ALTER USER MAPPING FOR a SERVER s OPTIONS (SET U&\"p\\0061ssword\" 'secret')", "ALTER USER MAPPING FOR a SERVER s OPTIONS (SET '***' '***')"},
		{"CREATE SUBSCRIPTION s CONNECTION 'host=h password=secret user=u' PUBLICATION p", "CREATE SUBSCRIPTION s CONNECTION '***' PUBLICATION p"},
		{"CREATE SUBSCRIPTION s CONNECTION E'host=h password=\\'sec ret\\'' PUBLICATION p", "CREATE SUBSCRIPTION s CONNECTION '***' PUBLICATION p"},
		// Constants among others, on either side of the word.
		{"UPDATE t SET password = 'secret', n = $1 WHERE id = 5", "UPDATE t SET password = '***', n = $1 WHERE id = 5"},
		{"UPDATE users SET password = crypt('secret', gen_salt('bf', 8))", "UPDATE users SET password = crypt('***', gen_salt('***', 8))"},
		{"SELECT id FROM users WHERE passwd = crypt('secret', passwd)", "SELECT id FROM users WHERE passwd = crypt('***', passwd)"},
		{"WITH x AS (SELECT 'secret' v) UPDATE users SET user_pass = x.v FROM x", "WITH x AS (SELECT '***' v) UPDATE users SET user_pass = x.v FROM x"},
		{"INSERT INTO users(name,password) VALUES ('u','secret') RETURNING id", "INSERT INTO users(name,password) VALUES ('***','***') RETURNING id"},
		{"SELECT set_config('my.password','secret',false)", "SELECT set_config('***','***',false)"},
		{"PREPARE z(text) AS UPDATE users SET password=$1; EXECUTE z('secret')", "PREPARE z(text) AS UPDATE users SET password=$1; EXECUTE z('***')"},
		{"SELECT pgp_sym_encrypt('text', 'secret')", "SELECT pgp_sym_encrypt('***', '***')"},
		{"SELECT id FROM t WHERE h = crypt ('secret', h)", "SELECT id FROM t WHERE h = crypt ('***', h)"},
		{"SELECT hmac(data, 'secret', 'sha256') FROM t", "SELECT hmac(data, '***', '***') FROM t"},
		// Bodies of code.
		{"DO $$ BEGIN EXECUTE 'ALTER ROLE x PASSWORD ''' || 'secret' || ''''; END $$", "DO '***'"},
		{"DO $$ DECLARE v text := 'secret'; BEGIN EXECUTE format('ALTER ROLE x PASSWORD %L', v); END $$ LANGUAGE plpgsql", "DO '***' LANGUAGE plpgsql"},
		{`DO E'BEGIN ALTER ROLE x PASSWORD \'secret\'; END'`, "DO '***'"},
		{`DO E'BEGIN ALTER ROLE x \x50ASSWORD \x27secret\x27; END'`, "DO '***'"},
		{`DO E'BEGIN EXECUTE E''ALTER ROLE x P\\101SSWORD \\''secret\\''''; END'`, "DO '***'"},
		{`DO U&'BEGIN ALTER ROLE x \0050ASSWORD \0027secret\0027; END'`, "DO '***'"},
		// URLs.
		{"SELECT dblink('postgresql://u:secret@h/db', 'SELECT 1')", "SELECT dblink('***', '***')"},
		{"SELECT dblink('postgresql://u:it''s secret@h/db')", "SELECT dblink('***')"},
		{"SELECT dblink('postgresql://u:' || 'secret@h/db')", "SELECT dblink('***' || '***')"},
		{"SELECT dblink('postgresql://u:12' || '34secret@h/db')", "SELECT dblink('***' || '***')"},
		{"SELECT dblink('postgresql://' || 'u:secret@h/db')", "SELECT dblink('***' || '***')"},
		{"SELECT dblink('postgresql://u' /* and */ || ':secret@h/db')", "SELECT dblink('***' /***/ || '***')"},
		{"SELECT dblink(format('postgresql://%s:%s@h/db', 'u', 'secret'))", "SELECT dblink(format('***', '***', '***'))"},
		{"SELECT dblink('postgresql://h/db?user=u&%70%61ssw%6Frd=secret')", "SELECT dblink('***')"},
		{"SELECT 1 -- postgresql://u:secret@h\n", "SELECT 1 /***/\n"},
		{"SELECT 1 postgresql://u:secret@h", "SELECT 1 postgresql'***'"},
		{"SELECT '1'; SELECT 1 postgresql://u:secret@h", "SELECT '***'"},
		{"SELECT dblink('https://u:" + strings.Repeat("x", maxAuthority) + "')", "SELECT dblink('***')"},
		// Values that have the wrong quotes, or none.
		{`ALTER ROLE ann PASSWORD "secret" LOGIN`, `ALTER ROLE ann PASSWORD '***' LOGIN`},
		{"ALTER ROLE ann PASSWORD secret-1 LOGIN", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD !secret LOGIN", "ALTER ROLE ann PASSWORD !'***'"},
		{"ALTER ROLE ann PASSWORD = secret-1 LOGIN", "ALTER ROLE ann PASSWORD = '***' LOGIN"},
		{"ALTER ROLE ann PASSWORD 'secret' LOGIN; ALTER ROLE bob PASSWORD $secret", "ALTER ROLE ann PASSWORD '***'"},
		{"SET my.password TO secret", "SET my.password TO '***'"},
		{"SET my.password = secret, x", "SET my.password = '***', x"},
		{"SET my.password TO DEFAULT", "SET my.password TO DEFAULT"},
		{"password:secret", "password:'***'"},
		{"password=.secret", "password='***'"},
		{"UPDATE t SET pwd = 12345", "UPDATE t SET pwd = '***'"},
		{"UPDATE t SET a = 'x', password = 'it's secret', b = 'y'", "UPDATE t SET a = '***'"},
		{"UPDATE t SET a = 'O'Brien', password = 'secret', b = 'It's'", "UPDATE t SET a = '***'"},
		{"UPDATE t SET a = 'the boys' house', password = 'secret', b = 'the girls' house'", "UPDATE t SET a = '***'"},
		{"UPDATE t SET a = ' the boys' , password = 'secret'", "UPDATE t SET a = '***' , password = '***'"},
		{"UPDATE t SET password = 'x' = 'secret' '", "UPDATE t SET password = '***'"},
		{`INSERT INTO users (name, password) VALUES ("u", f("secret")), ("u", "secret") RETURNING "id"`, `INSERT INTO users (name, password) VALUES ('***', f('***')), ('***', '***') RETURNING "id"`},
		{`UPDATE users SET "password" = "secret"`, `UPDATE users SET "password" = '***'`},
		{`SELECT dblink("host=h password=secret")`, `SELECT dblink('***')`},
		{`SELECT "password $$secret$$"`, `SELECT '***'`},
		// Quotes that may be none.
		{`ALTER ROLE ann PASSWORD 'secret\'; ALTER ROLE bob PASSWORD 'secret'`, `ALTER ROLE ann PASSWORD '***'`},
		{"ALTER ROLE ann PASSWORD E'\x95\\', E'secret', E'x'", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD 'sec''ret'x", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD'secret' LOGIN", "ALTER ROLE ann PASSWORD'***'"},
		{"ALTER ROLE ann PASSWORD 'secret", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD $$secret$", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD /* secret", "ALTER ROLE ann PASSWORD '***'"},
		{"ALTER ROLE ann PASSWORD \"secret", "ALTER ROLE ann PASSWORD '***'"},
	} {
		if got := logged(test.sql, false); got != test.want {
			t.Errorf("%s\nis logged as %s\nwant         %s", test.sql, got, test.want)
		}
	}
}

func TestTextsThatNameNoPasswordAreLoggedAsTheyAre(t *testing.T) {
	for _, sql := range []string{
		"",
		"SELECT 1",
		"SELECT 'x' /* bypass */ FROM passengers WHERE compass = 'passed' AND crypto = 'encrypted'",
		"SELECT '%70', E'\\x70', '\\x70617373776f7264', '%assword'",
		"SELECT 'https://example.com/a:b@c', 'http://localhost:8080/x', 'http://localhost:80', 'x@y', 'ftp://u@h'",
		`SELECT '{"a":"http://h:80","b":"x@y"}'`,
		"SELECT 'it",
		"SELECT $$x",
		// The word is there, and no constant.
		"SELECT password_hash FROM users WHERE id = 5",
		"SELECT password, passwd AS pwd FROM t WHERE password = $1 AND u.password = v.password AND password = lower($2) AND password IS NOT NULL",
		"SELECT pg_catalog.crypt(password, $1), password FROM t",
		"SELECT $1 = password $2",
		"SELECT password::text, 1.5e3 FROM t WHERE a[1] <> 2",
		`SELECT "users"."id", "users"."password" FROM "users" WHERE "users"."email" = $1 AND "users"."password" = "users"."old" LIMIT 1`,
		`INSERT INTO "users" ("email", "password") VALUES ($1, $2), ($3, $4) ON CONFLICT ("email") DO NOTHING RETURNING "id"`,
		"CREATE TABLE t (id int, password text NOT NULL)",
		"CREATE ROLE a LOGIN; SELECT password FROM t",
	} {
		if got := logged(sql, false); got != sql {
			t.Errorf("%s\nis logged as %s", sql, got)
		}
	}
}

// TestConstantsOfTextsThatAreCutOffAreMasked: the rest may say that one of them is a password.
func TestConstantsOfTextsThatAreCutOffAreMasked(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"SELECT a, 5, $1", "SELECT a, 5, $1"},
		{"SELECT 'secret' AS pa", "SELECT '***' AS pa"},
		{"SELECT 'secret', 'sec", "SELECT '***', '***'"},
		{"SELECT 'secret', 'secret''", "SELECT '***', '***'"},
		{`SELECT 'secret', E'secret\`, `SELECT '***', '***'`},
		{"SELECT 'secret', $sec", "SELECT '***', '***'"},
		{"SELECT 'secret', $$secret$", "SELECT '***', '***'"},
		{"SELECT 'secret' /* secret", "SELECT '***' '***'"},
		{"SELECT 'secret', \"secret", "SELECT '***', '***'"},
		{"SELECT 'it's', 'secret', 'x", "SELECT '***'"},
		{"SELECT 'secret', E", "SELECT '***', E"},
	} {
		if got := logged(test.sql, true); got != test.want {
			t.Errorf("%s\nis logged as %s\nwant         %s", test.sql, got, test.want)
		}
	}
}

// shapes are statements with a password, which is %[1]s. They hold wherever they stand.
var shapes = []string{
	"ALTER ROLE x PASSWORD '%[1]s'",
	"ALTER ROLE x PASSWORD E'%[1]s'",
	"ALTER ROLE x PASSWORD U&'%[1]s'",
	"ALTER ROLE x PASSWORD $$%[1]s$$",
	"ALTER ROLE x PASSWORD $a$%[1]s$a$",
	"ALTER ROLE x PASSWORD 'x''%[1]s'",
	"ALTER ROLE x PASSWORD 'x'\n'%[1]s'",
	"ALTER ROLE x PASSWORD 'x' -- c\n '%[1]s'",
	`ALTER ROLE x PASSWORD E'x\'%[1]s'`,
	"ALTER ROLE x PASSWORD\u00a0'%[1]s'",
	"CREATE USER MAPPING FOR x SERVER y OPTIONS (user 'a', \"password\" '%[1]s')",
	"ALTER USER MAPPING FOR x SERVER y OPTIONS (SET U&\"p\\0061ssword\" '%[1]s')",
	"DO $$ BEGIN EXECUTE 'ALTER ROLE x PASSWORD ''%[1]s'''; END $$",
	"DO $$ BEGIN EXECUTE format('ALTER ROLE x PASSWORD %%L', '%[1]s'); END $$",
	"DO $$ BEGIN EXECUTE 'ALTER ROLE x PASSWORD ' || quote_literal('%[1]s'); END $$",
	"DO $$ BEGIN EXECUTE 'ALTER ROLE x PASSWORD ''' || '%[1]s' || ''''; END $$",
	"DO $$ DECLARE v text := '%[1]s'; BEGIN EXECUTE format('ALTER ROLE x PASSWORD %%L', v); END $$",
	`DO E'BEGIN ALTER ROLE x \x50ASSWORD \x27%[1]s\x27; END'`,
	`DO U&'BEGIN ALTER ROLE x PASSWORD \0027%[1]s\0027; END'`,
	"UPDATE users SET password = crypt('%[1]s', 'salt')",
	"SELECT h = crypt('%[1]s', h) FROM t",
	"SELECT '%[1]s' AS password",
	"SELECT set_config('my.password', '%[1]s', false)",
	"INSERT INTO users(name,password) VALUES ('u', '%[1]s')",
	"PREPARE z(text) AS UPDATE users SET password=$1; EXECUTE z('%[1]s')",
	"SELECT dblink_connect('host=h sslpassword=%[1]s')",
	"SELECT dblink_connect('postgresql://u:%[1]s@h/db')",
	"SELECT dblink_connect('postgresql://' || 'u' || ':%[1]s@h/db')",
	"SELECT dblink_connect('postgresql://h/db?user=u&passw%%6Frd=%[1]s')",
}

// bareShapes are those with a password that is in no quotes for constants.
var bareShapes = []string{
	`ALTER ROLE x PASSWORD "%[1]s"`,
	"ALTER ROLE x PASSWORD %[1]s",
	"SET my.password TO %[1]s",
	"SET my.password = %[1]s",
	"SELECT 1 -- the password is %[1]s",
	`INSERT INTO users(name,password) VALUES ("u", "%[1]s")`,
}

func TestNoShapeShowsItsPassword(t *testing.T) {
	for _, shape := range append(shapes, bareShapes...) {
		const secret = "Hunter2"
		sql := fmt.Sprintf(shape, secret)
		for n := range len(sql) + 1 {
			if got := logged(sql[:n], n < len(sql)); strings.Contains(got, secret[:2]) {
				t.Errorf("%s\nis logged as %s", sql[:n], got)
			}
		}
	}
}

// FuzzMask: whatever the password is and whatever stands around its statement, it is not in the log,
// nor is a part of it when the text is cut off.
func FuzzMask(f *testing.F) {
	for _, seed := range [][3]string{{"", "", ""}, {"SELECT 'password'; ", "x", " LOGIN"}, {"/* password */", "1", "\n'x'"}, {`SELECT '\'' = "`, "ä", "'"}, {"-- password '\n", "'", ""}, {"password = ", `\`, "$$"}} {
		f.Add(seed[0], seed[1], seed[2], uint16(1000), uint8(0))
	}
	f.Fuzz(func(t *testing.T, before, more, behind string, cut uint16, shape uint8) {
		const secret = "Hunter2"
		if strings.Contains(before+more+behind, "Hunt") {
			return
		}
		text := before + " " + fmt.Sprintf(shapes[int(shape)%len(shapes)], secret) + behind
		whole := len(text)
		text = text[:min(len(text), int(cut))]
		if got := logged(text, len(text) < whole); strings.Contains(got, secret[:4]) {
			t.Errorf("%q is logged as %q", text, got)
		}
		// What is in the password does not show either, as long as it is one.
		more = strings.NewReplacer("'", "''", `\`, `\\`).Replace(more)
		text = "ALTER ROLE x PASSWORD E'" + more + secret + more + "'" + behind
		if got := logged(text, false); strings.Contains(got, secret) {
			t.Errorf("%q is logged as %q", text, got)
		}
	})
}

// TestMaskingTakesTimeThatGrowsWithTheText and no faster: if one of these were looked through again
// from every place of it, the test would not end before go test ends it.
func TestMaskingTakesTimeThatGrowsWithTheText(t *testing.T) {
	for _, piece := range []string{"://a", "://a'", "://a'/*", "://u:1'/*", "'", `\`, "/*", "$a$", `"`, "pass", "p\\", "password=a "} {
		text := append([]byte("password "), bytes.Repeat([]byte(piece), (4<<20)/len(piece))...)
		speaks(text[1:])
		if got := masked(text, false); !bytes.HasPrefix(got, text[:9]) {
			t.Errorf("4 MiB of %s become %.20s", piece, got)
		}
	}
}

func BenchmarkMask(b *testing.B) {
	for _, sql := range []string{
		"SELECT abalance FROM pgbench_accounts WHERE aid = 12345",
		"UPDATE users SET password = crypt('x', gen_salt('bf', 8)) WHERE id = 12345",
	} {
		b.Run(sql[:6], func(b *testing.B) {
			b.SetBytes(int64(len(sql)))
			var out []byte
			for b.Loop() {
				out = appendMasked(out[:0], []byte(sql), false)
			}
		})
	}
}
