"""Listens with psycopg 3 through a pooler whose address is in the environment."""

import psycopg


def main():
    with psycopg.connect(autocommit=True, prepare_threshold=0) as conn, psycopg.connect(autocommit=True) as other:
        heard = []
        conn.add_notify_handler(lambda n: heard.append((n.channel, n.payload)))

        def hears(n):
            while len(heard) < n:
                # Those that come with an answer go to the handler, these do not.
                heard.extend((n.relname.decode(), n.extra.decode()) for n in conn.wait(psycopg.generators.notifies(conn.pgconn)))

        conn.execute("LISTEN py")
        other.execute("NOTIFY py, 'one'")
        hears(1)
        other.execute("SELECT pg_notify('py', %s)", ("two",))
        hears(2)
        with conn.transaction():
            conn.execute("UNLISTEN py")
            conn.execute("LISTEN py2")
            raise psycopg.Rollback()
        other.execute("NOTIFY py, 'three'")
        hears(3)
        with conn.pipeline():
            conn.execute("SELECT 1")
            conn.execute("LISTEN last")
            conn.execute("UNLISTEN py")
        other.execute("NOTIFY py, 'four'")
        other.execute("NOTIFY last, 'five'")
        hears(4)
        assert heard == [("py", "one"), ("py", "two"), ("py", "three"), ("last", "five")], heard
    print("all is well")


main()
