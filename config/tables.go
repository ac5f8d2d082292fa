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

	ReplicaLag   *ReplicaLag // nil if the table is not there
	Vault        Vault       // zero if the table is not there
	QueryParsers []QueryParser

	ClientTLS ClientTLS // of the files that General names
	ServerTLS ServerTLS

	origins  map[string]string // of the values of keys, by table and key
	set      []setting         // what was set since, in the order of the keys
	loaded   *Config           // as it was without that; nil if it is
	pools    []Pool
	byLogin  map[login]int // index into pools
	logins   map[login]Credential
	anyLogin map[string]Credential  // by user alone
	hosts    map[string][]*Database // that serve each database
}

// login is what a client names.
type login struct{ user, database string }

// Database is one of [[databases]]: one host of a database. Keys without a value
// leave it to [general].
type Database struct {
	Name                 string         `toml:"name" required:"yes" status:"implemented" doc:"name that clients use"`
	Role                 string         `toml:"role" default:"primary" values:"primary|replica|auto" status:"implemented" doc:"what the host is: writes go to the primary, reads to replicas too; auto finds out, also when a replica is promoted"`
	Host                 string         `toml:"host" required:"yes" status:"implemented" doc:"where Postgres is: a name, an address, or the folder of its Unix socket"`
	Port                 int            `toml:"port" default:"5432" min:"1" max:"65535" status:"implemented" doc:"port of Postgres"`
	Shard                int            `toml:"shard" default:"0" status:"refused" doc:"number of the shard; pgebb does not shard, so there is only 0"`
	DatabaseName         string         `toml:"database_name" status:"implemented" doc:"name of the database in Postgres, if it is another"`
	User                 string         `toml:"user" status:"implemented" doc:"user that servers log in as, instead of the client's"`
	Password             string         `toml:"password" status:"implemented" secret:"yes" doc:"password of that user"`
	PoolSize             *int           `toml:"pool_size" alias:"max_pool_size" min:"1" status:"implemented" doc:"overrides default_pool_size"`
	MinPoolSize          *int           `toml:"min_pool_size" status:"implemented" doc:"overrides min_pool_size"`
	PoolerMode           *PoolerMode    `toml:"pooler_mode" status:"implemented" doc:"overrides pooler_mode"`
	StatementTimeout     *time.Duration `toml:"statement_timeout" unit:"ms" status:"implemented" doc:"statement_timeout of the sessions of servers; 0 leaves it to Postgres"`
	LockTimeout          *time.Duration `toml:"lock_timeout" unit:"ms" status:"implemented" doc:"lock_timeout of the sessions of servers; 0 leaves it to Postgres"`
	IdleTimeout          *time.Duration `toml:"idle_timeout" unit:"ms" status:"implemented" doc:"overrides idle_timeout"`
	ReadOnly             *bool          `toml:"read_only" status:"implemented" doc:"transactions are read-only unless they say otherwise"`
	ServerLifetime       *time.Duration `toml:"server_lifetime" unit:"ms" status:"implemented" doc:"overrides server_lifetime"`
	ServerLifetimeJitter *time.Duration `toml:"server_lifetime_jitter" unit:"ms" status:"implemented" doc:"overrides server_lifetime_jitter"`
	ReshardingOnly       bool           `toml:"resharding_only" default:"false" status:"refused" doc:"host that only resharding uses"`
	LBWeight             int            `toml:"lb_weight" default:"255" max:"255" status:"implemented" doc:"share of the reads that the host gets with load_balancing_strategy = weighted_round_robin, compared with the other hosts of its database; 0 is none"`
	PoolSizePrimary      *int           `toml:"pool_size_primary" min:"1" status:"implemented" doc:"pool_size where the host is a primary"`
	PoolSizeReplica      *int           `toml:"pool_size_replica" min:"1" status:"implemented" doc:"pool_size where the host is a replica"`
	MinPoolSizePrimary   *int           `toml:"min_pool_size_primary" status:"implemented" doc:"min_pool_size where the host is a primary"`
	MinPoolSizeReplica   *int           `toml:"min_pool_size_replica" status:"implemented" doc:"min_pool_size where the host is a replica"`
	IdleTimeoutPrimary   *time.Duration `toml:"idle_timeout_primary" unit:"ms" status:"implemented" doc:"idle_timeout where the host is a primary"`
	IdleTimeoutReplica   *time.Duration `toml:"idle_timeout_replica" unit:"ms" status:"implemented" doc:"idle_timeout where the host is a replica"`
}

// User is one of [[users]] of users.toml.
type User struct {
	Name                         string         `toml:"name" required:"yes" status:"implemented" doc:"name that clients log in with"`
	Database                     string         `toml:"database" status:"implemented" doc:"the database that it may use"`
	Databases                    []string       `toml:"databases" status:"implemented" doc:"several of them"`
	AllDatabases                 bool           `toml:"all_databases" default:"false" status:"implemented" doc:"all of them"`
	Password                     string         `toml:"password" status:"implemented" secret:"yes" doc:"its password, for clients and, unless there is server_password, for servers"`
	Passwords                    []string       `toml:"passwords" status:"implemented" secret:"yes" doc:"several that all work, as while one is being replaced"`
	PasswordHash                 string         `toml:"password_hash" status:"implemented" secret:"yes" doc:"SCRAM verifier or MD5 hash to check clients against; servers with the same one need no server_password"`
	Identity                     string         `toml:"identity" status:"implemented" doc:"common name of the certificate with which a client is let in without a password (tls_client_ca_certificate)"`
	TLSClientCertificateRequired bool           `toml:"tls_client_certificate_required" default:"true" status:"implemented" doc:"clients must show a certificate where tls_client_ca_certificate is set"`
	PoolSize                     *int           `toml:"pool_size" alias:"max_pool_size" min:"1" status:"implemented" doc:"overrides pool_size of the database"`
	MinPoolSize                  *int           `toml:"min_pool_size" status:"implemented" doc:"overrides min_pool_size of the database"`
	PoolerMode                   *PoolerMode    `toml:"pooler_mode" status:"implemented" doc:"overrides pooler_mode of the database"`
	IdleTimeout                  *time.Duration `toml:"idle_timeout" unit:"ms" status:"implemented" doc:"overrides idle_timeout of the database"`
	StatementTimeout             *time.Duration `toml:"statement_timeout" unit:"ms" status:"implemented" doc:"overrides statement_timeout of the database"`
	LockTimeout                  *time.Duration `toml:"lock_timeout" unit:"ms" status:"implemented" doc:"overrides lock_timeout of the database"`
	ServerLifetime               *time.Duration `toml:"server_lifetime" unit:"ms" status:"implemented" doc:"overrides server_lifetime of the database"`
	ServerLifetimeJitter         *time.Duration `toml:"server_lifetime_jitter" unit:"ms" status:"implemented" doc:"overrides server_lifetime_jitter of the database"`
	ReadOnly                     *bool          `toml:"read_only" status:"implemented" doc:"overrides read_only of the database"`
	PoolSizePrimary              *int           `toml:"pool_size_primary" min:"1" status:"implemented" doc:"pool_size where the host is a primary"`
	PoolSizeReplica              *int           `toml:"pool_size_replica" min:"1" status:"implemented" doc:"pool_size where the host is a replica"`
	MinPoolSizePrimary           *int           `toml:"min_pool_size_primary" status:"implemented" doc:"min_pool_size where the host is a primary"`
	MinPoolSizeReplica           *int           `toml:"min_pool_size_replica" status:"implemented" doc:"min_pool_size where the host is a replica"`
	IdleTimeoutPrimary           *time.Duration `toml:"idle_timeout_primary" unit:"ms" status:"implemented" doc:"idle_timeout where the host is a primary"`
	IdleTimeoutReplica           *time.Duration `toml:"idle_timeout_replica" unit:"ms" status:"implemented" doc:"idle_timeout where the host is a replica"`
	ServerUser                   string         `toml:"server_user" status:"implemented" doc:"user that servers log in as"`
	ServerPassword               string         `toml:"server_password" status:"implemented" secret:"yes" doc:"password of that user"`
	ServerAuth                   string         `toml:"server_auth" default:"password" values:"password|rds_iam|azure_workload_identity|vault_dynamic|vault_static" status:"implemented" doc:"what servers are logged in with: a password of these files, a token of AWS or Azure, or what Vault says; all but password need TLS to servers"`
	ServerIAMRegion              string         `toml:"server_iam_region" status:"implemented" doc:"region of the database for rds_iam; without it that of its host's name, or AWS_REGION"`
	ServerIAMAssumeRole          string         `toml:"server_iam_assume_role" status:"implemented" doc:"ARN of the role that is taken on for rds_iam, as for a database of another account"`
	ServerVaultPath              string         `toml:"server_vault_path" status:"implemented" doc:"what is read in Vault for vault_dynamic and vault_static, as database/creds/app or database/static-creds/app"`
	VaultPath                    string         `toml:"vault_path" status:"implemented" doc:"what is read in Vault for the password of the user's clients, as database/static-creds/app; those of this file are not theirs then"`
	VaultRefreshPercent          int            `toml:"vault_refresh_percent" default:"80" max:"100" status:"implemented" doc:"share of its life, up to 80 %, after which what vault_dynamic gave is replaced, and servers that use it"`
	ReplicationMode              bool           `toml:"replication_mode" default:"false" status:"refused" doc:"connections for logical replication"`
	ReplicationSharding          string         `toml:"replication_sharding" status:"refused" doc:"sharding of logical replication"`
	SchemaAdmin                  bool           `toml:"schema_admin" default:"false" status:"ignored" doc:"user that PgDog reads the schema as; pgebb does not need it"`
	CrossShardDisabled           bool           `toml:"cross_shard_disabled" default:"false" harmless:"true" status:"ignored" doc:"refuse statements for more than one shard; there is only one"`
	TwoPhaseCommit               bool           `toml:"two_phase_commit" default:"false" status:"refused" doc:"commit in two phases on several shards"`
	TwoPhaseCommitAuto           bool           `toml:"two_phase_commit_auto" status:"refused" doc:"do so even for single statements"`
}

// Admin is the [admin] table, in either file; that of users.toml wins.
type Admin struct {
	Name       string   `toml:"name" default:"admin" status:"implemented" env:"-" doc:"database name of the console"`
	User       string   `toml:"user" default:"admin" status:"implemented" env:"-" doc:"who may use it"`
	Password   string   `toml:"password" status:"implemented" env:"PGDOG_ADMIN_PASSWORD" secret:"yes" doc:"their password; without one it is a random one that nobody knows"`
	StatsUsers []string `toml:"stats_users" status:"implemented" own:"yes" env:"-" doc:"users of users.toml who may use SHOW on the console, with their own password"`
}

// TCP is the [tcp] table; it holds for both sides. TCP_NODELAY is always set.
type TCP struct {
	Keepalive         bool          `toml:"keepalive" default:"true" status:"implemented" restart:"yes" doc:"probe connections that are silent"`
	Time              time.Duration `toml:"time" unit:"ms" status:"implemented" restart:"yes" doc:"silence before the first probe; without it as the system has it"`
	Interval          time.Duration `toml:"interval" unit:"ms" status:"implemented" restart:"yes" doc:"time between probes; without it as the system has it"`
	UserTimeout       time.Duration `toml:"user_timeout" unit:"ms" status:"implemented" restart:"yes" doc:"how long sent data may stay unacknowledged; without it as the system has it"`
	Retries           int           `toml:"retries" status:"implemented" restart:"yes" doc:"unanswered probes that end a connection; without it as the system has it"`
	CongestionControl string        `toml:"congestion_control" status:"implemented" restart:"yes" doc:"congestion control algorithm; without it as the system has it"`
}

// Memory is the [memory] table.
type Memory struct {
	NetBuffer            int           `toml:"net_buffer" default:"4096" unit:"bytes" status:"ignored" doc:"size of a buffer that PgDog has for each connection; pgebb has none"`
	MessageBuffer        int           `toml:"message_buffer" default:"4096" unit:"bytes" status:"ignored" doc:"size of a buffer that PgDog has for each connection; pgebb has none"`
	StackSize            int           `toml:"stack_size" default:"2097152" unit:"bytes" status:"ignored" doc:"size of the stacks of threads; those of Go grow as they must"`
	Limit                int           `toml:"limit" default:"0" unit:"bytes" status:"implemented" own:"yes" restart:"yes" doc:"most bytes that the process is to use; 0 is the limit of its control group, if that has one"`
	TrimThreshold        int           `toml:"trim_threshold" default:"262144" unit:"bytes" status:"implemented" own:"yes" restart:"yes" doc:"how many bytes must be free before they are given back to the system, and at least a sixteenth of what is held"`
	TrimInterval         time.Duration `toml:"trim_interval" default:"5000" unit:"ms" min:"1" status:"implemented" own:"yes" restart:"yes" doc:"least time between two times that memory is given back"`
	TransparentHugePages bool          `toml:"transparent_huge_pages" default:"false" status:"implemented" own:"yes" restart:"yes" doc:"let the system use huge pages for the process; they save a little time and can keep a lot of memory"`
}

// ReplicaLag is the [replica_lag] table. It limits how far replicas may be behind, beside
// ban_replica_lag; that it is there turns it on.
type ReplicaLag struct {
	CheckInterval time.Duration `toml:"check_interval" default:"1000" unit:"ms" status:"implemented" doc:"how often hosts are asked for their position in the WAL, from the start on, whatever lsn_check_delay is; lsn_check_interval holds where it is shorter"`
	MaxAge        time.Duration `toml:"max_age" default:"25" unit:"ms" status:"implemented" doc:"a replica that is so far behind gets no reads until it has caught up; ban_replica_lag holds where it is shorter. A lag that is shorter than check_interval can go unnoticed"`
}

// QueryParser is one of [[query_parsers]]: query_parser of one database.
type QueryParser struct {
	Database string     `toml:"database" required:"yes" status:"implemented" doc:"database that this is for"`
	Level    ParserMode `toml:"level" default:"auto" status:"implemented" doc:"query_parser of that database"`
	Engine   string     `toml:"engine" default:"pg_query_protobuf" values:"pg_query_protobuf|pg_query_raw" status:"ignored" doc:"query_parser_engine of that database"`
}
