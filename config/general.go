package config

import "time"

// General is the [general] table. The tags say what there is to know of a key; see
// the package comment.
type General struct {
	Host                                  string        `toml:"host" default:"0.0.0.0" status:"implemented" restart:"yes" doc:"address that clients connect to"`
	Port                                  int           `toml:"port" default:"6432" status:"implemented" restart:"yes" doc:"port of that address, also in the name of the Unix socket"`
	Workers                               int           `toml:"workers" default:"2" status:"implemented" restart:"yes" doc:"most event loops that may run; 0 counts as 1"`
	DefaultPoolSize                       int           `toml:"default_pool_size" default:"10" status:"implemented" alias:"max_pool_size" doc:"most servers of a pool (user, database and host)"`
	MinPoolSize                           int           `toml:"min_pool_size" default:"1" status:"implemented" doc:"servers of a pool that are kept open"`
	PoolerMode                            PoolerMode    `toml:"pooler_mode" default:"transaction" status:"implemented" doc:"when a server goes back to its pool"`
	ConnectTimeout                        time.Duration `toml:"connect_timeout" default:"5000" status:"implemented" unit:"ms" doc:"one attempt to connect to a server, login included"`
	ConnectAttempts                       int           `toml:"connect_attempts" default:"1" status:"implemented" doc:"attempts in a row before a connection counts as failed"`
	ConnectAttemptDelay                   time.Duration `toml:"connect_attempt_delay" default:"0" status:"implemented" unit:"ms" doc:"pause between these attempts"`
	CheckoutTimeout                       time.Duration `toml:"checkout_timeout" default:"5000" status:"implemented" unit:"ms" doc:"how long a client waits for a server"`
	QueryTimeout                          time.Duration `toml:"query_timeout" default:"off" status:"implemented" unit:"ms" doc:"how long a query may take; then client and server are closed"`
	RollbackTimeout                       time.Duration `toml:"rollback_timeout" default:"5000" status:"implemented" unit:"ms" doc:"how long cleaning a server may take after its client has vanished"`
	IdleTimeout                           time.Duration `toml:"idle_timeout" default:"60000" status:"implemented" unit:"ms" doc:"servers above the minimum are closed when idle for so long"`
	ServerLifetime                        time.Duration `toml:"server_lifetime" default:"86400000" status:"implemented" unit:"ms" doc:"servers older than this are closed when free"`
	ServerLifetimeJitter                  time.Duration `toml:"server_lifetime_jitter" default:"0" status:"implemented" unit:"ms" doc:"random spread of server_lifetime, plus or minus"`
	ClientIdleTimeout                     time.Duration `toml:"client_idle_timeout" default:"off" status:"implemented" unit:"ms" doc:"clients that are idle for so long outside of a transaction are closed"`
	ClientIdleInTransactionTimeout        time.Duration `toml:"client_idle_in_transaction_timeout" default:"off" status:"implemented" unit:"ms" doc:"clients that are idle for so long inside of a transaction are closed"`
	ClientLoginTimeout                    time.Duration `toml:"client_login_timeout" default:"60000" status:"implemented" unit:"ms" env:"PGDOG_CLIENT_LOG_TIMEOUT" doc:"how long a login may take"`
	ConnectionRecovery                    Recovery      `toml:"connection_recovery" default:"recover" status:"implemented" doc:"what to do with a server whose client has vanished: drain its answers and roll back, only roll back, or close it"`
	ClientConnectionRecovery              Recovery      `toml:"client_connection_recovery" default:"drop" status:"implemented" doc:"what to do with a client that could not get a server: keep it, or close it"`
	ShutdownTimeout                       time.Duration `toml:"shutdown_timeout" default:"60000" status:"implemented" unit:"ms" doc:"how long a graceful shutdown waits for clients"`
	ShutdownTerminationTimeout            time.Duration `toml:"shutdown_termination_timeout" default:"off" status:"implemented" unit:"ms" doc:"how long it waits again after cancelling what is still running"`
	DNSTTL                                time.Duration `toml:"dns_ttl" default:"off" status:"ignored" unit:"ms" planned:"yes" doc:"periodic re-resolve of server host names"`
	BroadcastAddress                      string        `toml:"broadcast_address" default:"" status:"refused" doc:"UDP multicast peer discovery"`
	BroadcastPort                         int           `toml:"broadcast_port" default:"6433" status:"ignored" doc:"see the key above"`
	PubSubChannelSize                     int           `toml:"pub_sub_channel_size" default:"0" status:"refused" planned:"yes" doc:"buffered notifications per channel for LISTEN/NOTIFY in transaction mode"`
	DryRun                                bool          `toml:"dry_run" default:"false" status:"ignored" doc:"evaluate routing but do not act"`
	PreparedStatements                    string        `toml:"prepared_statements" default:"extended" status:"ignored" values:"disabled|extended|extended_anonymous|full" planned:"yes" doc:"named prepared statements in transaction mode; they are refused at present, session mode has them"`
	PreparedStatementsLimit               int           `toml:"prepared_statements_limit" default:"9223372036854775807" status:"ignored" planned:"yes" doc:"cap for *unused* global entries and for names kept per server connection"`
	PreparedStatementsTTL                 time.Duration `toml:"prepared_statements_ttl" default:"off" status:"ignored" unit:"ms" planned:"yes" doc:"server-side statements older than this are closed and re-parsed at next use"`
	PreparedStatementsTTLJitter           time.Duration `toml:"prepared_statements_ttl_jitter" default:"30000" status:"ignored" unit:"ms" planned:"yes" doc:"spread of TTL"`
	QueryCacheLimit                       int           `toml:"query_cache_limit" default:"1000" status:"ignored" planned:"yes" doc:"AST cache entry count; 0 behaves as 1"`
	QueryParser                           string        `toml:"query_parser" default:"auto" status:"ignored" values:"on|auto|off|session_control|session_control_and_locks" planned:"yes" env:"-" doc:"when SQL is parsed"`
	QueryParserEnabled                    bool          `toml:"query_parser_enabled" default:"false" status:"ignored" planned:"yes" doc:"old spelling of query_parser = 'on'"`
	QueryParserEngine                     string        `toml:"query_parser_engine" default:"pg_query_protobuf" status:"ignored" values:"pg_query_protobuf|pg_query_raw" env:"-" doc:"now only influences stack size; both use the same parser"`
	RegexParserLimit                      int           `toml:"regex_parser_limit" default:"1000" status:"ignored" env:"-" doc:"how much of a query the cheap regex inspects"`
	QuerySizeLimit                        int           `toml:"query_size_limit" default:"0" status:"refused" unit:"bytes" planned:"yes" doc:"limit for Query and Parse text"`
	QuerySizeLimitAction                  string        `toml:"query_size_limit_action" default:"warn" status:"ignored" values:"warn|block" planned:"yes" doc:"what happens to a query above query_size_limit"`
	LogMinDurationParse                   time.Duration `toml:"log_min_duration_parse" default:"off" status:"ignored" unit:"ms" planned:"yes" doc:"warn when a parse is slow"`
	LogQuerySampleLength                  int           `toml:"log_query_sample_length" default:"1000" status:"ignored" planned:"yes" doc:"truncate logged SQL"`
	LoadBalancingStrategy                 string        `toml:"load_balancing_strategy" default:"random" status:"ignored" values:"random|round_robin|least_active_connections|weighted_round_robin" planned:"yes" doc:"reads"`
	ReadWriteStrategy                     string        `toml:"read_write_strategy" default:"conservative" status:"ignored" values:"conservative|aggressive" planned:"yes" doc:"how explicit transactions are classified"`
	ReadWriteSplit                        string        `toml:"read_write_split" default:"include_primary" status:"ignored" values:"include_primary|exclude_primary|include_primary_if_replica_banned|prefer_primary" planned:"yes" doc:"may the primary serve reads"`
	HealthcheckInterval                   time.Duration `toml:"healthcheck_interval" default:"30000" status:"ignored" unit:"ms" planned:"yes" doc:"check a connection at checkout if not checked for this long"`
	HealthcheckTimeout                    time.Duration `toml:"healthcheck_timeout" default:"5000" status:"ignored" unit:"ms" planned:"yes" doc:"see the key above"`
	IdleHealthcheckInterval               time.Duration `toml:"idle_healthcheck_interval" default:"30000" status:"ignored" unit:"ms" planned:"yes" doc:"background check per pool"`
	IdleHealthcheckDelay                  time.Duration `toml:"idle_healthcheck_delay" default:"5000" status:"ignored" unit:"ms" planned:"yes" doc:"grace before background checks start"`
	HealthcheckPort                       int           `toml:"healthcheck_port" default:"0" status:"refused" planned:"yes" doc:"HTTP endpoint for external load balancers"`
	RequireHealthcheckOnDiscovery         bool          `toml:"require_healthcheck_on_discovery" default:"false" status:"refused" planned:"yes" doc:"a new pool must pass a check before use"`
	BanTimeout                            time.Duration `toml:"ban_timeout" default:"300000" status:"ignored" unit:"ms" planned:"yes" doc:"see the key above"`
	BanReplicaLag                         time.Duration `toml:"ban_replica_lag" default:"off" status:"refused" unit:"ms" planned:"yes" doc:"ban replica when lag exceeds"`
	BanReplicaLagBytes                    int           `toml:"ban_replica_lag_bytes" default:"9223372036854775807" status:"refused" unit:"bytes" planned:"yes" doc:"same in WAL bytes"`
	LSNCheckInterval                      time.Duration `toml:"lsn_check_interval" default:"5000" status:"ignored" unit:"ms" planned:"yes" doc:"replica LSN / role polling"`
	LSNCheckTimeout                       time.Duration `toml:"lsn_check_timeout" default:"5000" status:"ignored" unit:"ms" planned:"yes" doc:"see the key above"`
	LSNCheckDelay                         time.Duration `toml:"lsn_check_delay" default:"off" status:"ignored" unit:"ms" planned:"yes" doc:"must be lowered for role auto / lag bans"`
	AuthType                              AuthType      `toml:"auth_type" default:"scram" status:"implemented" doc:"how clients prove who they are"`
	PassthroughAuth                       string        `toml:"passthrough_auth" default:"disabled" status:"refused" values:"disabled|enabled|enabled_plain|enabled_allow_change|enabled_plain_allow_change" planned:"yes" doc:"ask clear-text password from client and use it for the server; plain variants allow it without TLS"`
	TLSCertificate                        string        `toml:"tls_certificate" default:"" status:"refused" planned:"yes" doc:"client-side TLS"`
	TLSPrivateKey                         string        `toml:"tls_private_key" default:"" status:"refused" planned:"yes" doc:"client-side TLS"`
	TLSClientRequired                     bool          `toml:"tls_client_required" default:"false" status:"refused" planned:"yes" env:"-" doc:"refuse plain clients"`
	TLSClientCACertificate                string        `toml:"tls_client_ca_certificate" default:"" status:"refused" planned:"yes" doc:"mTLS for clients"`
	TLSVerify                             string        `toml:"tls_verify" default:"prefer" status:"ignored" values:"disabled|prefer|verify_ca|verify_full" planned:"yes" doc:"TLS to servers; only disabled and prefer are accepted, and both connect without TLS"`
	TLSServerCACertificate                string        `toml:"tls_server_ca_certificate" default:"" status:"refused" planned:"yes" doc:"TLS to servers, client certificate"`
	TLSServerCertificate                  string        `toml:"tls_server_certificate" default:"" status:"refused" planned:"yes" doc:"TLS to servers, client certificate"`
	TLSServerPrivateKey                   string        `toml:"tls_server_private_key" default:"" status:"refused" planned:"yes" doc:"TLS to servers, client certificate"`
	OpenmetricsPort                       int           `toml:"openmetrics_port" default:"0" status:"refused" planned:"yes" doc:"metrics HTTP server"`
	OpenmetricsHost                       string        `toml:"openmetrics_host" default:"0.0.0.0" status:"ignored" planned:"yes" doc:"see the key above"`
	OpenmetricsNamespace                  string        `toml:"openmetrics_namespace" default:"" status:"ignored" planned:"yes" doc:"literal prefix for metric names"`
	StatsPeriod                           time.Duration `toml:"stats_period" default:"15000" status:"implemented" unit:"ms" doc:"averaging window of the statistics"`
	QueryLog                              string        `toml:"query_log" default:"" status:"refused" planned:"yes" doc:"write queries to a file"`
	QueryLogStdout                        bool          `toml:"query_log_stdout" default:"false" status:"refused" planned:"yes" doc:"see the key above"`
	LogFormat                             string        `toml:"log_format" default:"text" status:"implemented" values:"text|json|json_flattened" restart:"yes" doc:"how log lines look"`
	LogLevel                              string        `toml:"log_level" default:"info" status:"implemented" restart:"yes" env:"RUST_LOG" doc:"least severity that is logged"`
	LogConnections                        bool          `toml:"log_connections" default:"true" status:"implemented" doc:"log each client that has logged in"`
	LogDisconnections                     bool          `toml:"log_disconnections" default:"true" status:"implemented" doc:"log each client that has left"`
	LogDedupWindow                        time.Duration `toml:"log_dedup_window" default:"0" status:"ignored" unit:"ms" planned:"yes" env:"-" doc:"log flood control"`
	LogDedupThreshold                     int           `toml:"log_dedup_threshold" default:"0" status:"ignored" planned:"yes" env:"-" doc:"log flood control"`
	MirrorQueue                           int           `toml:"mirror_queue" default:"128" status:"ignored" doc:"mirroring queue"`
	MirrorExposure                        float64       `toml:"mirror_exposure" default:"1.0" status:"ignored" doc:"share of traffic mirrored"`
	CrossShardDisabled                    bool          `toml:"cross_shard_disabled" default:"false" status:"ignored" doc:"sharding, which pgebb does not do"`
	ExpandedExplain                       bool          `toml:"expanded_explain" default:"false" status:"ignored" doc:"sharding, which pgebb does not do: adds routing info to EXPLAIN"`
	TwoPhaseCommit                        bool          `toml:"two_phase_commit" default:"false" status:"refused" env:"-" doc:"two-phase commit across shards"`
	TwoPhaseCommitAuto                    bool          `toml:"two_phase_commit_auto" default:"false" status:"refused" env:"-" doc:"two-phase commit for every transaction across shards"`
	TwoPhaseCommitWALDir                  string        `toml:"two_phase_commit_wal_dir" default:"" status:"ignored" doc:"sharding, which pgebb does not do"`
	TwoPhaseCommitWALSegmentSize          int           `toml:"two_phase_commit_wal_segment_size" default:"16777216" status:"ignored" unit:"bytes" doc:"sharding, which pgebb does not do"`
	TwoPhaseCommitWALFsyncInterval        time.Duration `toml:"two_phase_commit_wal_fsync_interval" default:"0" status:"ignored" unit:"ms" doc:"sharding, which pgebb does not do"`
	TwoPhaseCommitWALCheckpointInterval   time.Duration `toml:"two_phase_commit_wal_checkpoint_interval" default:"15000" status:"ignored" unit:"ms" doc:"sharding, which pgebb does not do"`
	UniqueIDMin                           int           `toml:"unique_id_min" default:"0" status:"ignored" env:"-" doc:"sharding, which pgebb does not do"`
	UniqueIDFunction                      string        `toml:"unique_id_function" default:"standard" status:"ignored" values:"standard|compact" doc:"sharding, which pgebb does not do"`
	SystemCatalogs                        string        `toml:"system_catalogs" default:"omnisharded_sticky" status:"ignored" values:"omnisharded|omnisharded_sticky|sharded" doc:"sharding, which pgebb does not do"`
	OmnishardedSticky                     bool          `toml:"omnisharded_sticky" default:"false" status:"ignored" env:"-" doc:"sharding, which pgebb does not do"`
	LoadSchema                            string        `toml:"load_schema" default:"auto" status:"ignored" values:"on|off|auto" doc:"sharding, which pgebb does not do"`
	ReloadSchemaOnDDL                     bool          `toml:"reload_schema_on_ddl" default:"true" status:"ignored" env:"PGDOG_SCHEMA_RELOAD_ON_DDL" doc:"sharding, which pgebb does not do"`
	CanonicalizeTypeInformation           bool          `toml:"canonicalize_type_information" default:"false" status:"ignored" doc:"sharding, which pgebb does not do"`
	ShardingLookupCacheSize               int           `toml:"sharding_lookup_cache_size" default:"67108864" status:"ignored" unit:"bytes" env:"-" doc:"sharding, which pgebb does not do: byte-capped lookup cache (the one cache PgDog bounds by bytes)"`
	ShardingLookupTimeout                 time.Duration `toml:"sharding_lookup_timeout" default:"5000" status:"ignored" unit:"ms" env:"-" doc:"sharding, which pgebb does not do"`
	ReshardingCopyFormat                  string        `toml:"resharding_copy_format" default:"binary" status:"ignored" values:"text|binary" env:"-" doc:"sharding, which pgebb does not do"`
	ReshardingParallelCopies              int           `toml:"resharding_parallel_copies" default:"1" status:"ignored" env:"-" doc:"sharding, which pgebb does not do"`
	ReshardingCopyRetryMaxAttempts        int           `toml:"resharding_copy_retry_max_attempts" default:"5" status:"ignored" env:"-" doc:"sharding, which pgebb does not do"`
	ReshardingCopyRetryMinDelay           time.Duration `toml:"resharding_copy_retry_min_delay" default:"1000" status:"ignored" unit:"ms" env:"-" doc:"sharding, which pgebb does not do"`
	ReshardingReplicationRetryMaxAttempts int           `toml:"resharding_replication_retry_max_attempts" default:"5" status:"ignored" doc:"sharding, which pgebb does not do"`
	ReshardingReplicationRetryMinDelay    time.Duration `toml:"resharding_replication_retry_min_delay" default:"1000" status:"ignored" unit:"ms" doc:"sharding, which pgebb does not do"`
	CutoverTrafficStopThreshold           int           `toml:"cutover_traffic_stop_threshold" default:"1000000" status:"ignored" unit:"bytes" doc:"sharding, which pgebb does not do"`
	CutoverReplicationLagThreshold        int           `toml:"cutover_replication_lag_threshold" default:"0" status:"ignored" unit:"bytes" doc:"sharding, which pgebb does not do"`
	CutoverLastTransactionDelay           time.Duration `toml:"cutover_last_transaction_delay" default:"1000" status:"ignored" unit:"ms" doc:"sharding, which pgebb does not do"`
	CutoverTimeout                        time.Duration `toml:"cutover_timeout" default:"30000" status:"ignored" unit:"ms" doc:"sharding, which pgebb does not do"`
	CutoverTimeoutAction                  string        `toml:"cutover_timeout_action" default:"abort" status:"ignored" values:"abort|cutover" doc:"sharding, which pgebb does not do"`
	CutoverSaveConfig                     bool          `toml:"cutover_save_config" default:"false" status:"ignored" env:"-" doc:"sharding, which pgebb does not do"`
	UnixSocketDir                         string        `toml:"unix_socket_dir" default:"" status:"implemented" restart:"yes" own:"yes" doc:"folder for a Unix socket named .s.PGSQL.<port>; empty for none"`
	QueryCacheMemoryLimit                 int           `toml:"query_cache_memory_limit" default:"67108864" status:"ignored" unit:"bytes" planned:"yes" own:"yes" doc:"most bytes of the AST cache"`
	QueryCacheIdleTimeout                 time.Duration `toml:"query_cache_idle_timeout" default:"300000" status:"ignored" unit:"ms" planned:"yes" own:"yes" doc:"entries of the AST cache that are unused for so long go"`
	PreparedStatementsMemoryLimit         int           `toml:"prepared_statements_memory_limit" default:"0" status:"ignored" unit:"bytes" planned:"yes" own:"yes" doc:"most bytes of all prepared statements; 0 for the default"`
}
