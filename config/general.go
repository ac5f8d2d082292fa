package config

import "time"

// General is the [general] table. The tags say what there is to know of a key; see
// the package comment.
type General struct {
	Host                                  string        `toml:"host" default:"0.0.0.0" status:"implemented" restart:"yes" doc:"address that pgebb listens on"`
	Port                                  int           `toml:"port" default:"6432" min:"1" max:"65535" status:"implemented" restart:"yes" doc:"port of that address, also in the name of the Unix socket"`
	Workers                               int           `toml:"workers" default:"2" status:"implemented" restart:"yes" doc:"most event loops that may run, each on a thread of its own; 0 counts as 1"`
	IOURing                               bool          `toml:"io_uring" default:"true" status:"implemented" own:"yes" restart:"yes" doc:"make the system calls of several connections at once where the system lets this process use io_uring (Linux 5.18); elsewhere it makes no difference"`
	DefaultPoolSize                       int           `toml:"default_pool_size" alias:"max_pool_size" default:"10" min:"1" status:"implemented" doc:"most servers of a pool, which is one user at one database on one host"`
	MinPoolSize                           int           `toml:"min_pool_size" default:"1" status:"implemented" doc:"servers of a pool that are kept open even when nobody needs them"`
	PoolerMode                            PoolerMode    `toml:"pooler_mode" default:"transaction" status:"implemented" doc:"when a server goes back to its pool: after each transaction, when the client leaves, or after each statement"`
	ConnectTimeout                        time.Duration `toml:"connect_timeout" default:"5000" unit:"ms" min:"1" status:"implemented" doc:"one attempt to connect to a server, login included"`
	ConnectAttempts                       int           `toml:"connect_attempts" default:"1" min:"1" status:"implemented" doc:"attempts in a row before a connection counts as failed"`
	ConnectAttemptDelay                   time.Duration `toml:"connect_attempt_delay" default:"0" unit:"ms" status:"implemented" doc:"pause between these attempts"`
	CheckoutTimeout                       time.Duration `toml:"checkout_timeout" default:"5000" unit:"ms" min:"1" status:"implemented" doc:"how long a client waits for a server"`
	QueryTimeout                          time.Duration `toml:"query_timeout" default:"off" unit:"ms" status:"implemented" doc:"how long a query may take before its client and its server are closed; 0 is no limit"`
	RollbackTimeout                       time.Duration `toml:"rollback_timeout" default:"5000" unit:"ms" status:"implemented" doc:"how long it may take to clean a server whose client has vanished; then the server is closed"`
	IdleTimeout                           time.Duration `toml:"idle_timeout" default:"60000" unit:"ms" status:"implemented" doc:"servers above min_pool_size are closed when idle for so long"`
	ServerLifetime                        time.Duration `toml:"server_lifetime" default:"86400000" unit:"ms" status:"implemented" doc:"servers older than this are closed when free; 0 is no limit"`
	ServerLifetimeJitter                  time.Duration `toml:"server_lifetime_jitter" default:"0" unit:"ms" status:"implemented" doc:"random spread of server_lifetime, plus or minus, so that servers do not all end at once"`
	ClientIdleTimeout                     time.Duration `toml:"client_idle_timeout" default:"off" unit:"ms" status:"implemented" doc:"clients that are idle for so long outside of a transaction are closed; 0 is no limit"`
	ClientIdleInTransactionTimeout        time.Duration `toml:"client_idle_in_transaction_timeout" default:"off" unit:"ms" status:"implemented" doc:"clients that are idle for so long inside of a transaction are closed, and it is rolled back; 0 is no limit"`
	ClientLoginTimeout                    time.Duration `toml:"client_login_timeout" default:"60000" unit:"ms" min:"1" status:"implemented" env:"PGDOG_CLIENT_LOG_TIMEOUT" doc:"how long a login may take, from the first byte to the last"`
	ConnectionRecovery                    Recovery      `toml:"connection_recovery" default:"recover" status:"implemented" doc:"what to do with a server whose client has vanished: read its answers to the end and roll back, only roll back, or close it"`
	ClientConnectionRecovery              Recovery      `toml:"client_connection_recovery" default:"drop" status:"implemented" doc:"what to do with a client that could not get a server: keep it, or close it"`
	ShutdownTimeout                       time.Duration `toml:"shutdown_timeout" default:"60000" unit:"ms" status:"implemented" doc:"how long a graceful shutdown waits for clients to finish"`
	ShutdownTerminationTimeout            time.Duration `toml:"shutdown_termination_timeout" default:"off" optional:"yes" unit:"ms" status:"implemented" doc:"how long it waits again after it has cancelled what was still running; without it nothing is cancelled"`
	DNSTTL                                time.Duration `toml:"dns_ttl" default:"off" optional:"yes" unit:"ms" status:"ignored" planned:"yes" doc:"how often the addresses of hosts are looked up again; pgebb looks them up whenever it connects"`
	BroadcastAddress                      string        `toml:"broadcast_address" status:"ignored" doc:"multicast address on which instances find each other; they do not"`
	BroadcastPort                         int           `toml:"broadcast_port" default:"6433" max:"65535" status:"ignored" doc:"port for that"`
	PubSubChannelSize                     int           `toml:"pub_sub_channel_size" default:"0" status:"implemented" max:"1000000" doc:"how many notifications to keep for each client that cannot take them, because it is in a transaction or does not read, for LISTEN in transaction and statement mode; more are dropped; 0 refuses LISTEN there"`
	DryRun                                bool          `toml:"dry_run" default:"false" status:"ignored" doc:"compute routes without following them; pgebb has only one way to go"`
	PreparedStatements                    string        `toml:"prepared_statements" default:"extended" values:"disabled|extended|extended_anonymous|full" status:"implemented" doc:"whether prepared statements are carried from server to server in transaction and statement mode: disabled passes them on as they are; extended carries those of the extended protocol, and so does extended_anonymous, since unnamed ones are carried anyway; full carries those of SQL's PREPARE, too, if that and EXECUTE come in the simple protocol"`
	PreparedStatementsLimit               int           `toml:"prepared_statements_limit" default:"9223372036854775807" status:"implemented" doc:"most statements that are kept though no client uses them, and most that a server keeps; without a limit, 1000 (PgDog: none)"`
	PreparedStatementsTTL                 time.Duration `toml:"prepared_statements_ttl" default:"off" optional:"yes" unit:"ms" status:"implemented" doc:"age at which a server prepares a statement anew"`
	PreparedStatementsTTLJitter           time.Duration `toml:"prepared_statements_ttl_jitter" default:"30000" unit:"ms" status:"implemented" doc:"random spread of prepared_statements_ttl"`
	QueryCacheLimit                       int           `toml:"query_cache_limit" default:"1000" status:"implemented" doc:"most entries of the cache of parsed statements"`
	QueryParser                           ParserMode    `toml:"query_parser" default:"auto" status:"implemented" env:"-" doc:"which statements are parsed"`
	QueryParserEnabled                    bool          `toml:"query_parser_enabled" default:"false" status:"implemented" doc:"old way to set query_parser to on"`
	QueryParserEngine                     string        `toml:"query_parser_engine" default:"pg_query_protobuf" values:"pg_query_protobuf|pg_query_raw" status:"ignored" env:"-" doc:"which entry point of the parser is used; pgebb has one"`
	RegexParserLimit                      int           `toml:"regex_parser_limit" default:"1000" status:"ignored" env:"-" doc:"how many characters of a statement are looked at before it is parsed; pgebb needs no such limit"`
	QuerySizeLimit                        int           `toml:"query_size_limit" unit:"bytes" status:"implemented" doc:"longest text of a Query or Parse message"`
	QuerySizeLimitAction                  string        `toml:"query_size_limit_action" default:"warn" values:"warn|block" status:"implemented" doc:"what to do with a longer one: log it, or refuse it"`
	LogMinDurationParse                   time.Duration `toml:"log_min_duration_parse" default:"off" optional:"yes" unit:"ms" status:"implemented" doc:"log statements that take so long to parse"`
	LogQuerySampleLength                  int           `toml:"log_query_sample_length" default:"1000" status:"implemented" doc:"how many characters of a statement are logged"`
	LoadBalancingStrategy                 string        `toml:"load_balancing_strategy" default:"random" values:"random|round_robin|least_active_connections|weighted_round_robin" status:"implemented" doc:"how the host for a read is chosen: any; one after the other; the one with the fewest servers in use; or one after the other by lb_weight"`
	ReadWriteStrategy                     string        `toml:"read_write_strategy" default:"conservative" values:"conservative|aggressive" status:"implemented" doc:"where a transaction goes that is not READ ONLY: to the primary, or where its first statement can go"`
	ReadWriteSplit                        string        `toml:"read_write_split" default:"include_primary" values:"include_primary|exclude_primary|include_primary_if_replica_banned|prefer_primary" status:"implemented" doc:"which hosts get reads: all; the replicas only; the primary too while a replica is banned or cannot be reached; or the primary only, but for what asks for a replica"`
	HealthcheckInterval                   time.Duration `toml:"healthcheck_interval" default:"30000" unit:"ms" status:"implemented" doc:"a server that was not used for so long is asked for a sign of life before a client gets it; 0 asks always"`
	HealthcheckTimeout                    time.Duration `toml:"healthcheck_timeout" default:"5000" unit:"ms" status:"implemented" doc:"how long such a sign may take; then the server is closed, and the client gets another"`
	IdleHealthcheckInterval               time.Duration `toml:"idle_healthcheck_interval" default:"30000" unit:"ms" status:"implemented" doc:"how often a pool asks one of its idle servers for a sign of life; 0 is off"`
	IdleHealthcheckDelay                  time.Duration `toml:"idle_healthcheck_delay" default:"5000" unit:"ms" status:"implemented" doc:"time from the start to the first such check"`
	HealthcheckPort                       int           `toml:"healthcheck_port" max:"65535" status:"implemented" restart:"yes" doc:"port of an HTTP endpoint that answers 200 at any path, 502 when no pool can connect, and 503 during a shutdown"`
	RequireHealthcheckOnDiscovery         bool          `toml:"require_healthcheck_on_discovery" default:"false" status:"ignored" doc:"a new pool serves nobody before a check has passed; a pool of pgebb serves nobody before a login to Postgres has"`
	BanTimeout                            time.Duration `toml:"ban_timeout" default:"300000" unit:"ms" status:"implemented" doc:"how long a replica that cannot be reached gets no reads, at least; 0 is off, and then it gets none while it cannot be reached"`
	BanReplicaLag                         time.Duration `toml:"ban_replica_lag" default:"off" unit:"ms" status:"implemented" doc:"a replica that is so far behind the primary gets no reads until it has caught up; needs lsn_check_delay or [replica_lag], and is known to the interval of these checks"`
	BanReplicaLagBytes                    int           `toml:"ban_replica_lag_bytes" default:"9223372036854775807" unit:"bytes" status:"implemented" doc:"the same, in bytes of WAL"`
	LSNCheckInterval                      time.Duration `toml:"lsn_check_interval" default:"5000" unit:"ms" status:"implemented" doc:"how often hosts are asked for their role and their position in the WAL"`
	LSNCheckTimeout                       time.Duration `toml:"lsn_check_timeout" default:"5000" unit:"ms" status:"implemented" doc:"how long such a question may take"`
	LSNCheckDelay                         time.Duration `toml:"lsn_check_delay" default:"off" unit:"ms" status:"implemented" doc:"time from the start to the first such question; hosts with role auto are asked from the start, whatever it is"`
	AuthType                              AuthType      `toml:"auth_type" default:"scram" status:"implemented" doc:"how clients prove who they are"`
	PassthroughAuth                       Passthrough   `toml:"passthrough_auth" default:"disabled" status:"implemented" doc:"ask clients for their passwords in clear text, over TLS or at the Unix socket (with plain, anywhere), and let Postgres judge those of users that are not in users.toml; with allow_change also one that is not the known one"`
	AuthUser                              string        `toml:"auth_user" status:"implemented" own:"yes" doc:"user of Postgres that looks up the passwords of users that are not in users.toml; without one they are not looked up"`
	AuthPassword                          string        `toml:"auth_password" status:"implemented" own:"yes" secret:"yes" doc:"password of that user"`
	AuthQuery                             string        `toml:"auth_query" status:"implemented" own:"yes" doc:"how it does that, if not by pg_authid: a query whose parameter is the name and whose columns are the name, the password or its hash and, if there is a third, when that expires, in seconds since 1970; name the schema of everything, since search_path is pg_catalog"`
	AuthDBName                            string        `toml:"auth_dbname" status:"implemented" own:"yes" doc:"database of [[databases]] where it does that, instead of the one that the client asks for"`
	AuthQueryCacheTTL                     time.Duration `toml:"auth_query_cache_ttl" default:"60000" unit:"ms" status:"implemented" own:"yes" doc:"how long what was looked up is good; a wrong password has it looked up again sooner"`
	AuthQueryCacheLimit                   int           `toml:"auth_query_cache_limit" default:"1048576" unit:"bytes" status:"implemented" own:"yes" restart:"yes" doc:"most bytes that this takes"`
	FailedLoginDelay                      time.Duration `toml:"failed_login_delay" default:"250" unit:"ms" max:"60000" status:"implemented" own:"yes" doc:"how long a client waits to be told that its password is wrong; one address may try 64 passwords of one user at a time"`
	TLSCertificate                        string        `toml:"tls_certificate" status:"implemented" doc:"PEM file of the certificate that clients are shown, with those between it and the authority behind it; without one there is no TLS for clients"`
	TLSPrivateKey                         string        `toml:"tls_private_key" status:"implemented" doc:"PEM file of the private key of that certificate, without a passphrase"`
	TLSClientRequired                     bool          `toml:"tls_client_required" default:"false" status:"implemented" env:"-" doc:"refuse clients without TLS, but for those at the Unix socket"`
	TLSClientCACertificate                string        `toml:"tls_client_ca_certificate" status:"implemented" doc:"PEM file of the authorities that the certificates of clients must come from; clients must show one then, unless their user has tls_client_certificate_required = false"`
	TLSVerify                             TLSVerify     `toml:"tls_verify" default:"prefer" status:"implemented" doc:"TLS to servers: none; if the server has it, with whatever certificate; always, with a certificate of an authority; or, besides, one for the host"`
	TLSServerCACertificate                string        `toml:"tls_server_ca_certificate" status:"implemented" doc:"PEM file of the authorities that the certificates of servers must come from; without one those of the system"`
	TLSServerCertificate                  string        `toml:"tls_server_certificate" status:"implemented" doc:"PEM file of the certificate that servers are shown"`
	TLSServerPrivateKey                   string        `toml:"tls_server_private_key" status:"implemented" doc:"PEM file of the private key of that certificate"`
	OpenmetricsPort                       int           `toml:"openmetrics_port" max:"65535" status:"implemented" restart:"yes" doc:"port on which metrics are served over HTTP, at any path; without it they are not"`
	OpenmetricsHost                       string        `toml:"openmetrics_host" default:"0.0.0.0" status:"implemented" restart:"yes" doc:"address on which metrics are served"`
	OpenmetricsNamespace                  string        `toml:"openmetrics_namespace" status:"implemented" restart:"yes" doc:"what is put in front of the names of PgDog's metrics, as pgdog_; those of pgebb begin with pgebb_ in any case"`
	StatsPeriod                           time.Duration `toml:"stats_period" default:"15000" unit:"ms" min:"1" status:"implemented" doc:"time over which averages are taken, at least a second"`
	QueryLog                              string        `toml:"query_log" status:"implemented" doc:"file to which the text of every statement is written, with who sent it; a reload opens it anew"`
	QueryLogStdout                        bool          `toml:"query_log_stdout" default:"false" status:"implemented" doc:"write the same to standard output"`
	LogFormat                             string        `toml:"log_format" default:"text" values:"text|json|json_flattened" status:"implemented" restart:"yes" doc:"how log lines look; json_flattened is the same as json"`
	LogLevel                              string        `toml:"log_level" default:"info" status:"implemented" restart:"yes" env:"RUST_LOG" doc:"least severity that is logged: trace, debug, info, warn, error or off; of a list of filters the one without a module counts"`
	LogConnections                        bool          `toml:"log_connections" default:"true" status:"implemented" doc:"log each client that has logged in"`
	LogDisconnections                     bool          `toml:"log_disconnections" default:"true" status:"implemented" doc:"log each client that has left"`
	LogDedupWindow                        time.Duration `toml:"log_dedup_window" default:"0" unit:"ms" status:"implemented" restart:"yes" env:"-" doc:"time in which log lines with the same message are counted instead of written, once there were log_dedup_threshold of them; 0 is off"`
	LogDedupThreshold                     int           `toml:"log_dedup_threshold" default:"0" status:"implemented" restart:"yes" env:"-" doc:"how many lines with the same message are written in log_dedup_window; 0 is off"`
	MirrorQueue                           int           `toml:"mirror_queue" default:"128" status:"ignored" doc:"default of queue_length of [[mirroring]]"`
	MirrorExposure                        float64       `toml:"mirror_exposure" default:"1.0" min:"0" max:"1" status:"ignored" doc:"default of exposure of [[mirroring]]"`
	CrossShardDisabled                    bool          `toml:"cross_shard_disabled" default:"false" harmless:"true" status:"ignored" doc:"refuse statements for more than one shard; there is only one"`
	ExpandedExplain                       bool          `toml:"expanded_explain" default:"false" status:"ignored" doc:"add the route to what EXPLAIN says; there is only one"`
	TwoPhaseCommit                        bool          `toml:"two_phase_commit" default:"false" status:"refused" env:"-" doc:"commit in two phases on several shards"`
	TwoPhaseCommitAuto                    bool          `toml:"two_phase_commit_auto" status:"refused" env:"-" doc:"do so even for single statements"`
	TwoPhaseCommitWALDir                  string        `toml:"two_phase_commit_wal_dir" status:"ignored" doc:"folder of the log of such commits"`
	TwoPhaseCommitWALSegmentSize          int           `toml:"two_phase_commit_wal_segment_size" default:"16777216" unit:"bytes" status:"ignored" doc:"size of a file of that log"`
	TwoPhaseCommitWALFsyncInterval        time.Duration `toml:"two_phase_commit_wal_fsync_interval" default:"0" unit:"ms" status:"ignored" doc:"how often that log is flushed"`
	TwoPhaseCommitWALCheckpointInterval   time.Duration `toml:"two_phase_commit_wal_checkpoint_interval" default:"15000" unit:"ms" status:"ignored" doc:"how often that log is shortened"`
	UniqueIDMin                           int           `toml:"unique_id_min" default:"0" status:"ignored" env:"-" doc:"least number that pgdog.unique_id gives; pgebb has no such function"`
	UniqueIDFunction                      string        `toml:"unique_id_function" default:"standard" values:"standard|compact" status:"ignored" doc:"how it makes numbers"`
	SystemCatalogs                        string        `toml:"system_catalogs" default:"omnisharded_sticky" values:"omnisharded|omnisharded_sticky|sharded" status:"ignored" doc:"which shard the catalogs of Postgres are read from"`
	OmnishardedSticky                     bool          `toml:"omnisharded_sticky" default:"false" status:"ignored" env:"-" doc:"whether a client reads tables that are on all shards always from the same one"`
	LoadSchema                            string        `toml:"load_schema" default:"auto" values:"on|off|auto" status:"ignored" doc:"read the schema of the database at the start; pgebb does not need it"`
	ReloadSchemaOnDDL                     bool          `toml:"reload_schema_on_ddl" default:"true" status:"ignored" env:"PGDOG_SCHEMA_RELOAD_ON_DDL" doc:"read it again when it changes"`
	CanonicalizeTypeInformation           bool          `toml:"canonicalize_type_information" default:"false" status:"ignored" doc:"give types the same numbers on all shards"`
	ShardingLookupCacheSize               int           `toml:"sharding_lookup_cache_size" default:"67108864" unit:"bytes" status:"ignored" env:"-" doc:"size of the cache of looked-up shards"`
	ShardingLookupTimeout                 time.Duration `toml:"sharding_lookup_timeout" default:"5000" unit:"ms" status:"ignored" env:"-" doc:"how long such a look-up may take"`
	ReshardingCopyFormat                  string        `toml:"resharding_copy_format" default:"binary" values:"text|binary" status:"ignored" env:"-" doc:"format of the copies that resharding makes"`
	ReshardingParallelCopies              int           `toml:"resharding_parallel_copies" default:"1" status:"ignored" env:"-" doc:"how many tables resharding copies at a time"`
	ReshardingCopyRetryMaxAttempts        int           `toml:"resharding_copy_retry_max_attempts" default:"5" status:"ignored" env:"-" doc:"how often resharding tries to copy a table"`
	ReshardingCopyRetryMinDelay           time.Duration `toml:"resharding_copy_retry_min_delay" default:"1000" unit:"ms" status:"ignored" env:"-" doc:"least pause between these attempts"`
	ReshardingReplicationRetryMaxAttempts int           `toml:"resharding_replication_retry_max_attempts" default:"5" status:"ignored" doc:"how often resharding tries to replicate"`
	ReshardingReplicationRetryMinDelay    time.Duration `toml:"resharding_replication_retry_min_delay" default:"1000" unit:"ms" status:"ignored" doc:"least pause between these attempts"`
	CutoverTrafficStopThreshold           int           `toml:"cutover_traffic_stop_threshold" default:"1000000" unit:"bytes" status:"ignored" doc:"replication lag at which a cutover stops the clients"`
	CutoverReplicationLagThreshold        int           `toml:"cutover_replication_lag_threshold" default:"0" unit:"bytes" status:"ignored" doc:"replication lag at which a cutover goes ahead"`
	CutoverLastTransactionDelay           time.Duration `toml:"cutover_last_transaction_delay" default:"1000" unit:"ms" status:"ignored" doc:"quiet time after which a cutover goes ahead"`
	CutoverTimeout                        time.Duration `toml:"cutover_timeout" default:"30000" unit:"ms" status:"ignored" doc:"how long a cutover may take"`
	CutoverTimeoutAction                  string        `toml:"cutover_timeout_action" default:"abort" values:"abort|cutover" status:"ignored" doc:"what happens to a cutover that takes longer"`
	CutoverSaveConfig                     bool          `toml:"cutover_save_config" default:"false" status:"ignored" env:"-" doc:"write the configuration to disk after a cutover"`
	UnixSocketDir                         string        `toml:"unix_socket_dir" status:"implemented" own:"yes" restart:"yes" doc:"folder for a Unix socket named .s.PGSQL and the port, where libpq looks for it; without it there is none"`
	QueryCacheMemoryLimit                 int           `toml:"query_cache_memory_limit" default:"67108864" unit:"bytes" status:"implemented" own:"yes" doc:"most bytes of the cache of parsed statements; 0 is no limit"`
	QueryCacheIdleTimeout                 time.Duration `toml:"query_cache_idle_timeout" default:"300000" unit:"ms" status:"implemented" own:"yes" doc:"statements that were not used for so long leave that cache; 0 is never"`
	PreparedStatementsClientLimit         int           `toml:"prepared_statements_client_limit" default:"100000" status:"implemented" own:"yes" doc:"most prepared statements of one client; one more is refused"`
	PreparedStatementsMemoryLimit         int           `toml:"prepared_statements_memory_limit" default:"0" unit:"bytes" status:"implemented" own:"yes" doc:"most bytes of all prepared statements together, with the names of clients; 0 is a quarter of memory.limit, or of the limit of the control group, or 1 GiB if there is neither; with such a limit, at most half of it"`
}
