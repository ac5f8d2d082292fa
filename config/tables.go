package config

import "time"

// Config is a whole configuration. It is immutable after [Load].
type Config struct {
	General   General
	Databases []Database
	Users     []User
	Admin     Admin
	TCP       TCP
	Memory    Memory

	pools    []Pool
	byLogin  map[login]int // index into pools
	logins   map[login]Credential
	anyLogin map[string]Credential // by user alone
	names    map[string]bool       // of databases
}

// login is what a client names.
type login struct{ user, database string }

// Database is one of [[databases]]: one host of a database. Keys without a value
// leave it to [general].
type Database struct {
	Name                 string         `toml:"name" required:"yes" status:"implemented" doc:"name that clients use"`
	Role                 string         `toml:"role" default:"primary" values:"primary|replica|auto" status:"implemented" doc:"only the primary is used at present; auto counts as primary"`
	Host                 string         `toml:"host" required:"yes" status:"implemented" doc:"where Postgres is: a name, an address, or the folder of its Unix socket"`
	Port                 int            `toml:"port" default:"5432" status:"implemented" doc:"port of Postgres"`
	Shard                int            `toml:"shard" default:"0" status:"refused" doc:"number of the shard; pgebb does not shard"`
	DatabaseName         string         `toml:"database_name" status:"implemented" doc:"name of the database in Postgres, if it is another"`
	User                 string         `toml:"user" status:"implemented" doc:"user that servers log in as, instead of the client's"`
	Password             string         `toml:"password" status:"implemented" secret:"yes" doc:"password of that user"`
	PoolSize             *int           `toml:"pool_size" alias:"max_pool_size" status:"implemented" doc:"overrides default_pool_size"`
	MinPoolSize          *int           `toml:"min_pool_size" status:"implemented" doc:"overrides min_pool_size"`
	PoolerMode           *PoolerMode    `toml:"pooler_mode" status:"implemented" doc:"overrides pooler_mode"`
	StatementTimeout     *time.Duration `toml:"statement_timeout" unit:"ms" status:"implemented" doc:"statement_timeout of the servers' sessions"`
	LockTimeout          *time.Duration `toml:"lock_timeout" unit:"ms" status:"implemented" doc:"lock_timeout of the servers' sessions"`
	IdleTimeout          *time.Duration `toml:"idle_timeout" unit:"ms" status:"implemented" doc:"overrides idle_timeout"`
	ReadOnly             *bool          `toml:"read_only" status:"implemented" doc:"servers' transactions are read only by default"`
	ServerLifetime       *time.Duration `toml:"server_lifetime" unit:"ms" status:"implemented" doc:"overrides server_lifetime"`
	ServerLifetimeJitter *time.Duration `toml:"server_lifetime_jitter" unit:"ms" status:"implemented" doc:"overrides server_lifetime_jitter"`
	ReshardingOnly       bool           `toml:"resharding_only" default:"false" status:"refused" doc:"sharding, which pgebb does not do"`
	LBWeight             int            `toml:"lb_weight" default:"255" status:"ignored" planned:"yes" doc:"share of the reads"`
	PoolSizePrimary      *int           `toml:"pool_size_primary" status:"implemented" doc:"pool_size of a primary"`
	PoolSizeReplica      *int           `toml:"pool_size_replica" status:"ignored" planned:"yes" doc:"pool_size of a replica"`
	MinPoolSizePrimary   *int           `toml:"min_pool_size_primary" status:"implemented" doc:"min_pool_size of a primary"`
	MinPoolSizeReplica   *int           `toml:"min_pool_size_replica" status:"ignored" planned:"yes" doc:"min_pool_size of a replica"`
	IdleTimeoutPrimary   *time.Duration `toml:"idle_timeout_primary" unit:"ms" status:"implemented" doc:"idle_timeout of a primary"`
	IdleTimeoutReplica   *time.Duration `toml:"idle_timeout_replica" unit:"ms" status:"ignored" planned:"yes" doc:"idle_timeout of a replica"`
}

// User is one of [[users]] of users.toml.
type User struct {
	Name                         string         `toml:"name" required:"yes" status:"implemented" doc:"name that clients log in with"`
	Database                     string         `toml:"database" status:"implemented" doc:"the database that it may use"`
	Databases                    []string       `toml:"databases" status:"implemented" doc:"several of them"`
	AllDatabases                 bool           `toml:"all_databases" default:"false" status:"implemented" doc:"all of them"`
	Password                     string         `toml:"password" status:"implemented" secret:"yes" doc:"its password, for clients and, without server_password, for servers"`
	Passwords                    []string       `toml:"passwords" status:"implemented" secret:"yes" doc:"several that all work, as while one is being replaced"`
	PasswordHash                 string         `toml:"password_hash" status:"implemented" secret:"yes" doc:"SCRAM verifier to check clients against; servers then need server_password, or none"`
	Identity                     string         `toml:"identity" status:"refused" planned:"yes" doc:"identity in a client certificate"`
	TLSClientCertificateRequired bool           `toml:"tls_client_certificate_required" default:"true" status:"ignored" planned:"yes" doc:"a client with an identity needs a certificate"`
	PoolSize                     *int           `toml:"pool_size" alias:"max_pool_size" status:"implemented" doc:"overrides pool_size of the database"`
	MinPoolSize                  *int           `toml:"min_pool_size" status:"implemented" doc:"overrides min_pool_size of the database"`
	PoolerMode                   *PoolerMode    `toml:"pooler_mode" status:"implemented" doc:"overrides pooler_mode of the database"`
	IdleTimeout                  *time.Duration `toml:"idle_timeout" unit:"ms" status:"implemented" doc:"overrides idle_timeout of the database"`
	StatementTimeout             *time.Duration `toml:"statement_timeout" unit:"ms" status:"implemented" doc:"overrides statement_timeout of the database"`
	LockTimeout                  *time.Duration `toml:"lock_timeout" unit:"ms" status:"implemented" doc:"overrides lock_timeout of the database"`
	ServerLifetime               *time.Duration `toml:"server_lifetime" unit:"ms" status:"implemented" doc:"overrides server_lifetime of the database"`
	ServerLifetimeJitter         *time.Duration `toml:"server_lifetime_jitter" unit:"ms" status:"implemented" doc:"overrides server_lifetime_jitter of the database"`
	ReadOnly                     *bool          `toml:"read_only" status:"implemented" doc:"overrides read_only of the database"`
	PoolSizePrimary              *int           `toml:"pool_size_primary" status:"implemented" doc:"pool_size of a primary"`
	PoolSizeReplica              *int           `toml:"pool_size_replica" status:"ignored" planned:"yes" doc:"pool_size of a replica"`
	MinPoolSizePrimary           *int           `toml:"min_pool_size_primary" status:"implemented" doc:"min_pool_size of a primary"`
	MinPoolSizeReplica           *int           `toml:"min_pool_size_replica" status:"ignored" planned:"yes" doc:"min_pool_size of a replica"`
	IdleTimeoutPrimary           *time.Duration `toml:"idle_timeout_primary" unit:"ms" status:"implemented" doc:"idle_timeout of a primary"`
	IdleTimeoutReplica           *time.Duration `toml:"idle_timeout_replica" unit:"ms" status:"ignored" planned:"yes" doc:"idle_timeout of a replica"`
	ServerUser                   string         `toml:"server_user" status:"implemented" doc:"user that servers log in as"`
	ServerPassword               string         `toml:"server_password" status:"implemented" secret:"yes" doc:"password of that user"`
	ServerAuth                   string         `toml:"server_auth" default:"password" values:"password|rds_iam|azure_workload_identity|vault_dynamic|vault_static" status:"refused" doc:"where the servers' password comes from; only password"`
	ServerIAMRegion              string         `toml:"server_iam_region" status:"refused" doc:"region for rds_iam"`
	ServerVaultPath              string         `toml:"server_vault_path" status:"refused" doc:"path in Vault"`
	VaultPath                    string         `toml:"vault_path" status:"refused" doc:"path in Vault"`
	VaultRefreshPercent          int            `toml:"vault_refresh_percent" default:"80" status:"ignored" doc:"when a secret of Vault is fetched again"`
	ReplicationMode              bool           `toml:"replication_mode" default:"false" status:"refused" doc:"connections for logical replication"`
	ReplicationSharding          string         `toml:"replication_sharding" status:"refused" doc:"sharding, which pgebb does not do"`
	SchemaAdmin                  bool           `toml:"schema_admin" default:"false" status:"ignored" doc:"user that the schema is loaded as, which pgebb does not need"`
	CrossShardDisabled           bool           `toml:"cross_shard_disabled" default:"false" status:"ignored" doc:"there is only one shard"`
	TwoPhaseCommit               bool           `toml:"two_phase_commit" default:"false" status:"refused" doc:"two-phase commit across shards"`
	TwoPhaseCommitAuto           bool           `toml:"two_phase_commit_auto" default:"false" status:"refused" doc:"two-phase commit across shards"`
}

// Admin is the [admin] table, in either file; that of users.toml wins.
type Admin struct {
	Name     string `toml:"name" default:"admin" status:"implemented" restart:"yes" doc:"database name of the console"`
	User     string `toml:"user" default:"admin" status:"implemented" doc:"who may use it"`
	Password string `toml:"password" env:"PGDOG_ADMIN_PASSWORD" status:"implemented" secret:"yes" doc:"their password; without one, a random one that nobody knows"`
}

// TCP is the [tcp] table; it holds for both sides. TCP_NODELAY is always set.
type TCP struct {
	Keepalive         bool          `toml:"keepalive" default:"true" status:"implemented" doc:"probe connections that are silent"`
	Time              time.Duration `toml:"time" default:"0" unit:"ms" status:"implemented" doc:"silence before the first probe; 0 for the system's default"`
	Interval          time.Duration `toml:"interval" default:"0" unit:"ms" status:"implemented" doc:"time between probes; 0 for the system's default"`
	UserTimeout       time.Duration `toml:"user_timeout" default:"0" unit:"ms" status:"implemented" doc:"how long sent data may stay unacknowledged; 0 for the system's default"`
	Retries           int           `toml:"retries" default:"0" status:"implemented" doc:"unanswered probes that end a connection; 0 for the system's default"`
	CongestionControl string        `toml:"congestion_control" status:"implemented" doc:"congestion control algorithm"`
}

// Memory is the [memory] table.
type Memory struct {
	NetBuffer            int           `toml:"net_buffer" default:"4096" unit:"bytes" status:"ignored" doc:"PgDog's buffer of a connection; pgebb has none"`
	MessageBuffer        int           `toml:"message_buffer" default:"4096" unit:"bytes" status:"ignored" doc:"PgDog's buffer of a connection; pgebb has none"`
	StackSize            int           `toml:"stack_size" default:"2097152" unit:"bytes" status:"ignored" doc:"stack of PgDog's threads"`
	Limit                int           `toml:"limit" default:"0" unit:"bytes" status:"ignored" planned:"yes" own:"yes" doc:"budget of the process"`
	TrimThreshold        int           `toml:"trim_threshold" default:"4194304" unit:"bytes" status:"implemented" own:"yes" restart:"yes" doc:"memory that is worth giving back to the system"`
	TrimInterval         time.Duration `toml:"trim_interval" default:"5000" unit:"ms" status:"implemented" own:"yes" restart:"yes" doc:"least time between two times that memory is given back"`
	TransparentHugePages bool          `toml:"transparent_huge_pages" default:"false" status:"implemented" own:"yes" restart:"yes" doc:"let the system back the process with huge pages"`
}
