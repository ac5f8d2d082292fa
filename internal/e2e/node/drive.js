// Drives pg, the driver for Node.js, through a pooler whose address is in the environment.
'use strict';

const assert = require('node:assert');
const pg = require('pg');
const Cursor = require('pg-cursor');

async function main() {
  const pool = new pg.Pool({ max: 6 });
  await pool.query('CREATE TABLE node (i int, t text)');
  await Promise.all([...Array(30).keys()].map((i) => pool.query('INSERT INTO node VALUES ($1, $2)', [i, `row ${i}`])));
  const { rows } = await pool.query('SELECT count(*)::int AS n FROM node WHERE i < $1', [10]);
  assert.strictEqual(rows[0].n, 10);

  const client = await pool.connect();
  await client.query('BEGIN');
  await assert.rejects(client.query('SELECT 1/0'), (e) => e.code === '22012');
  await client.query('ROLLBACK');

  // A cursor sends Parse, Bind, Describe and Flush, and its Executes later.
  const cursor = client.query(new Cursor('SELECT i FROM node ORDER BY i'));
  let read = 0;
  for (let batch = await cursor.read(7); batch.length > 0; batch = await cursor.read(7)) {
    read += batch.length;
  }
  assert.strictEqual(read, 30);
  await cursor.close();

  const big = await client.query("SELECT repeat('x', 1000000) AS big");
  assert.strictEqual(big.rows[0].big.length, 1000000);
  for (let i = 0; i < 3; i++) {
    const named = await client.query({ name: 'fetch', text: 'SELECT t FROM node WHERE i = $1', values: [i] });
    assert.strictEqual(named.rows[0].t, `row ${i}`);
  }
  client.release();
  await pool.end();

  const admin = new pg.Client({ user: 'admin', password: process.env.PGEBB_ADMIN_PASSWORD, database: 'admin' });
  await admin.connect();
  const pools = await admin.query('SHOW POOLS');
  assert.strictEqual(pools.rows.length, 1);
  await admin.end();
  console.log('all is well');
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
