"""Has psycopg 3 read what the console of a pooler shows: in the extended protocol, with
and without names for statements, and in the binary format. The commands are arguments."""

import os
import sys

import psycopg


def main():
    password = os.environ["PGEBB_ADMIN_PASSWORD"]
    for autocommit in (True, False):
        with psycopg.connect(user="admin", password=password, autocommit=autocommit) as conn:
            for binary in (False, True):
                for prepare in (False, True):
                    for command in sys.argv[1:]:
                        rows = conn.execute(command, binary=binary, prepare=prepare)
                        assert rows.description, command
                        rows.fetchall()
    print("all is well")


main()
