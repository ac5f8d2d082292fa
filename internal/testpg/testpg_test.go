package testpg_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgebb/pgebb/internal/testpg"
)

// envChild makes this test binary start a Postgres, say where, and wait.
const envChild = "TESTPG_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		child()
	}
	testpg.Main(m)
}

func child() {
	pg, err := testpg.Start()
	if err != nil {
		os.Stdout.WriteString("error: " + err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString(pg.Dir + "\n")
	select {}
}

func TestNothingIsLeftOfAServerWhoseOwnerIsKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(dir, "/") {
		t.Fatalf("the child says %q (%v)", line, err)
	}
	pid, err := os.ReadFile(dir + "/data/postmaster.pid")
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	process := "/proc/" + strings.Fields(string(pid))[0]
	for _, path := range []string{process, dir} {
		waitUntilGone(t, path)
	}
}

func waitUntilGone(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", path)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestDatabasesBelongToARoleOfTheirOwnAndGoWithTheTest(t *testing.T) {
	pg := testpg.ForTest(t)
	var name string
	t.Run("during the test", func(t *testing.T) {
		name = pg.Database(t)
		var owner string
		err := pg.Conn(t, name).QueryRow(context.Background(), "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()").Scan(&owner)
		if err != nil || owner != name {
			t.Errorf("the owner of %s is %q (%v)", name, owner, err)
		}
	})
	var left int
	err := pg.Conn(t, "postgres").QueryRow(context.Background(),
		"SELECT (SELECT count(*) FROM pg_database WHERE datname = $1) + (SELECT count(*) FROM pg_roles WHERE rolname = $1)", name).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d of database and role %s are left (%v)", left, name, err)
	}
}

func TestARunningPostgresIsFoundByItsEnvironmentVariable(t *testing.T) {
	pg := testpg.ForTest(t)
	name, value, _ := strings.Cut(pg.Env(), "=")
	if name != testpg.EnvURL {
		t.Fatalf("Env is %q", pg.Env())
	}
	got, err := testpg.Running(value)
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != pg.Host || got.Port != pg.Port || got.Dir != pg.Dir || got.User != pg.User || got.Password != pg.Password {
		t.Errorf("%q gives %+v, want %+v", value, got, pg)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	var before syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	cpu, err := testpg.CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	total := func(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
	// The kernel scales user and system time apart, and rounds each to microseconds.
	if slack := 10 * time.Millisecond; cpu < total(before)-slack || cpu > total(after)+slack {
		t.Errorf("processor time %v is not between %v and %v", cpu, total(before), total(after))
	}
	if n, err := testpg.OpenFDs(os.Getpid()); err != nil || n < 3 {
		t.Errorf("%d open descriptors (%v)", n, err)
	}
	if n, err := testpg.RSS(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("a resident set of %d bytes (%v)", n, err)
	}
}

func TestUsageOfNoProcess(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if _, err := testpg.CPUTime(pid); err == nil {
		t.Error("a process that has ended has a processor time")
	}
	if _, err := testpg.RSS(pid); err == nil {
		t.Error("a process that has ended has a resident set")
	}
	if _, err := testpg.OpenFDs(pid); err == nil {
		t.Error("a process that has ended has descriptors")
	}
}

func TestPgebbBetweenClientAndPostgres(t *testing.T) {
	pg := testpg.ForTest(t)
	name := pg.Database(t)
	p := testpg.Pgebb(t, pg.Options(name, "transaction", 2))
	conn, err := pgx.Connect(context.Background(), p.URL(name, name, name)+"&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var user string
	if err := conn.QueryRow(context.Background(), "SELECT current_user").Scan(&user); err != nil || user != name {
		t.Errorf("the user is %q, want %q (%v)", user, name, err)
	}
}

func TestPgebbThatCannotStartSaysWhy(t *testing.T) {
	_, err := testpg.StartPgebb(testpg.Options{General: "no_such_key = 1", Binary: testpg.Binary(t)})
	if err == nil || !strings.Contains(err.Error(), "no_such_key") {
		t.Errorf("the error is %v", err)
	}
}

func TestWrongEnvironmentVariables(t *testing.T) {
	for _, text := range []string{"", "postgres://postgres@localhost/x", "://", "postgres://localhost:http/x"} {
		if _, err := testpg.Running(text); err == nil {
			t.Errorf("%q is taken for the URL of a server", text)
		}
	}
}
