package config

import "time"

// The tables of PgDog's that pgebb has no use for, or none yet. They are known so that
// a misspelt key in them is found and the reference can name them; what they hold is
// not kept.

type rewriteTable struct {
	Enabled      bool   `toml:"enabled" default:"false" status:"refused" doc:"rewrite statements that change the sharding key"`
	ShardKey     string `toml:"shard_key" default:"error" values:"ignore|error|rewrite|rewrite_omni" status:"ignored" doc:"what to do with an UPDATE of the sharding key"`
	SplitInserts string `toml:"split_inserts" default:"error" values:"ignore|error|rewrite|rewrite_omni" status:"ignored" doc:"what to do with an INSERT of rows for several shards"`
	PrimaryKey   string `toml:"primary_key" default:"ignore" status:"ignored" doc:"what to do with an INSERT without primary key"`
}

type replicationTable struct {
	PgDumpPath string `toml:"pg_dump_path" default:"pg_dump" status:"ignored" doc:"program that resharding copies the schema with"`
}

type otelTable struct {
	Endpoint      string            `toml:"endpoint" env:"-" status:"ignored" planned:"yes" doc:"where metrics are sent"`
	Namespace     string            `toml:"namespace" default:"pgdog" env:"-" status:"ignored" planned:"yes" doc:"what the names of metrics start with"`
	Headers       map[string]string `toml:"headers" env:"-" status:"ignored" planned:"yes" secret:"yes" doc:"headers of these requests"`
	DatadogAPIKey string            `toml:"datadog_api_key" env:"-" status:"ignored" planned:"yes" secret:"yes" doc:"key for Datadog"`
	PushInterval  time.Duration     `toml:"push_interval" default:"10000" unit:"ms" env:"-" status:"ignored" planned:"yes" doc:"how often metrics are sent"`
}

type pluginTable struct {
	Name   string `toml:"name" status:"refused" doc:"shared library"`
	Config string `toml:"config" status:"refused" doc:"its configuration"`
}

type multiTenantTable struct {
	Column string `toml:"column" status:"refused" doc:"column that every statement must restrict"`
}

type mirroringTable struct {
	SourceDB      string  `toml:"source_db" status:"refused" doc:"database whose traffic is copied"`
	DestinationDB string  `toml:"destination_db" status:"refused" doc:"database that gets the copy"`
	QueueLength   int     `toml:"queue_length" status:"refused" doc:"how many transactions may wait to be copied"`
	Exposure      float64 `toml:"exposure" status:"refused" doc:"share of the traffic that is copied"`
	Level         string  `toml:"level" default:"all" values:"all|dml|ddl" status:"refused" doc:"which statements are copied"`
}

type shardedTable struct {
	Database       string           `toml:"database" status:"refused" doc:"database of the table"`
	Name           string           `toml:"name" status:"refused" doc:"its name"`
	Schema         string           `toml:"schema" status:"refused" doc:"its schema"`
	Column         string           `toml:"column" status:"refused" doc:"sharding key"`
	Primary        bool             `toml:"primary" default:"false" status:"refused" doc:"whether the column is the primary key of the table"`
	Centroids      []any            `toml:"centroids" status:"refused" doc:"centroids of vectors"`
	CentroidsPath  string           `toml:"centroids_path" status:"refused" doc:"file with centroids"`
	DataType       string           `toml:"data_type" values:"bigint|uuid|vector|varchar" status:"refused" doc:"type of the column"`
	CentroidProbes int              `toml:"centroid_probes" status:"refused" doc:"how many centroids are tried"`
	Hasher         string           `toml:"hasher" values:"postgres|sha1" status:"refused" doc:"hash function"`
	LookupQuery    string           `toml:"lookup_query" status:"refused" doc:"query that finds the shard"`
	LookupResult   string           `toml:"lookup_result" values:"value|shard" status:"refused" doc:"what that query returns"`
	Mapping        []map[string]any `toml:"mapping" status:"refused" doc:"which values are on which shard: shard, and values or start and end"`
}

type omnishardedTable struct {
	Database string   `toml:"database" status:"refused" doc:"database of the tables"`
	Tables   []string `toml:"tables" status:"refused" doc:"tables that are on all shards"`
	Sticky   bool     `toml:"sticky" status:"refused" doc:"whether a client reads them always from the same shard"`
}

type shardedMappingTable struct {
	Database string `toml:"database" status:"refused" doc:"database of the table"`
	Column   string `toml:"column" status:"refused" doc:"sharding key"`
	Table    string `toml:"table" status:"refused" doc:"name of the table"`
	Schema   string `toml:"schema" status:"refused" doc:"its schema"`
	Kind     string `toml:"kind" values:"list|range|default" status:"refused" doc:"what kind of mapping it is"`
	Start    any    `toml:"start" status:"refused" doc:"first value of a range"`
	End      any    `toml:"end" status:"refused" doc:"value behind a range"`
	Values   []any  `toml:"values" status:"refused" doc:"values of a list"`
	Shard    int    `toml:"shard" status:"refused" doc:"their shard"`
}

type shardedSchemaTable struct {
	Database string `toml:"database" status:"refused" doc:"database of the schema"`
	Name     string `toml:"name" status:"refused" doc:"its name"`
	Shard    int    `toml:"shard" status:"refused" doc:"its shard"`
	All      bool   `toml:"all" status:"refused" doc:"whether it is on all shards"`
}
