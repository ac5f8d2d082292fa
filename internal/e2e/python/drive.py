"""Drives psycopg 3 through a pooler whose address is in the environment."""

import os

import psycopg


def main():
    threshold = 0  # every statement is prepared
    with psycopg.connect(prepare_threshold=threshold) as conn:
        conn.execute("CREATE TABLE py (i int, t text)")
        with conn.cursor() as cur:
            with cur.copy("COPY py FROM STDIN") as copy:
                for i in range(1000):
                    copy.write_row((i, f"row {i}"))
            cur.execute("SELECT count(*) FROM py WHERE i < %s", (10,))
            assert cur.fetchone() == (10,)
            cur.executemany("INSERT INTO py VALUES (%s, %s)", [(i, "x") for i in range(100)])
            with cur.copy("COPY (SELECT i FROM py WHERE i < 3 AND t <> 'x') TO STDOUT") as copy:
                copied = b"".join(bytes(block) for block in copy)
            assert copied == b"0\n1\n2\n", copied
    with psycopg.connect(autocommit=True, prepare_threshold=threshold) as conn:
        with conn.pipeline():
            cursors = [conn.execute("SELECT %s::int", (i,)) for i in range(50)]
        assert [c.fetchone()[0] for c in cursors] == list(range(50))
        try:
            with conn.pipeline():
                conn.execute("SELECT 1/0", prepare=False)
                conn.execute("SELECT 1", prepare=False)
            raise AssertionError("no error")
        except psycopg.errors.DivisionByZero:
            pass
        assert conn.execute("SELECT 1").fetchone() == (1,)
        with conn.transaction():
            with conn.cursor(name="server_side") as cur:
                cur.execute("SELECT i FROM py ORDER BY i")
                assert len(cur.fetchmany(10)) == 10
    password = os.environ["PGEBB_ADMIN_PASSWORD"]
    with psycopg.connect(user="admin", password=password, dbname="admin", autocommit=True) as conn:
        assert len(conn.execute("SHOW POOLS").fetchall()) == 1
    print("all is well")


main()
