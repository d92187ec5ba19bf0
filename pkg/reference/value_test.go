package reference

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// short writes references as "host:port scheme" with a question mark behind what is only likely.
func short(refs []Reference) string {
	var out []string
	for _, r := range refs {
		s := r.Host
		if r.Port != 0 {
			s = fmt.Sprintf("%s:%d", s, r.Port)
		}
		if r.Scheme != "" {
			s = r.Scheme + "://" + s
		}
		if r.Strength == Likely {
			s += "?"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestVariable(t *testing.T) {
	tests := []struct{ name, value, want string }{
		// URLs.
		{"LEDGER", "http://ledger", "http://ledger"},
		{"LEDGER", "http://ledger/hello", "http://ledger"},
		{"LEDGER", "https://Ledger.Payments:8443/x?y=z", "https://ledger.payments:8443"},
		{"LEDGER", "https://my-app/hello", "https://my-app"},
		{"LEDGER", "http://ledger.payments.svc.cluster.local.:80", "http://ledger.payments.svc.cluster.local.:80"},
		{"LEDGER", "grpc://ledger:50051", "grpc://ledger:50051"},
		{"LEDGER", "dns:///ledger:50051", "dns://ledger:50051"},
		{"LEDGER", "dns://192.0.2.1/ledger:50051", "dns://ledger:50051"},
		{"CACHE", "redis://:secret@cache:6379/0", "redis://cache:6379"},
		{"CACHE", "rediss://user:p%40ss@cache", "rediss://cache"},
		{"CACHE", "redis://:p@ss@cache:6379", "redis://cache:6379"},
		{"QUEUE", "amqp://guest:guest@rabbit:5672/vhost", "amqp://rabbit:5672"},
		{"QUEUE", "amqp://u:p@a:5672,amqp://u:p@b:5672", "amqp://a:5672 amqp://b:5672"},
		{"DB", "mongodb://u:p@mongo-0.mongo:27017,mongo-1.mongo:27017/db?replicaSet=rs", "mongodb://mongo-0.mongo:27017 mongodb://mongo-1.mongo:27017"},
		{"DB", "mongodb+srv://cluster0.example.org/db", "mongodb+srv://cluster0.example.org"},
		{"DB", "postgresql+psycopg2://u:p@db/x", "postgresql+psycopg2://db"},
		{"ETCD", "https://etcd-a:2379,https://etcd-b:2379", "https://etcd-a:2379 https://etcd-b:2379"},
		{"ETCD_INITIAL_CLUSTER", "a=https://etcd-a:2380,b=https://etcd-b:2380", "https://etcd-a:2380 https://etcd-b:2380"},
		{"ZK", "zk://a,b:2181/path", "zk://a zk://b:2181"},
		{"NATS", "nats://nats:4222", "nats://nats:4222"},
		{"MASTER", "k8s://https://kubernetes.default.svc:443", "https://kubernetes.default.svc:443"},
		{"X", "hdfs://namenode:8020/user", "hdfs://namenode:8020"},
		{"X", "custom://ledger:99/x", "custom://ledger:99?"},
		{"X", "http://[2001:db8::1]:80/", ""},
		{"X", "http://192.0.2.1:80/", ""},
		{"X", "http://localhost:80/ http://127.0.0.1", ""},
		{"X", "unix:///var/run/x.sock", ""},
		{"X", "file:///etc/x", ""},
		{"X", "s3://bucket/key", ""},
		{"X", "gs://bucket.example.org/key", ""},
		{"X", "spiffe://cluster.local/ns/x/sa/y", ""},
		{"X", "sqlite:///x.db", ""},
		{"X", "http://www.w3.org/2001/XMLSchema", ""},
		{"X", "custom://word", ""},
		{"X", "https?://([^/]+)/", ""},
		{"X", `^https://foo\.example\.org/`, ""},
		{"X", "http://%s:8080/", ""},
		{"X", "http://<host>:8080/", ""},
		{"X", "http://*.example.org", ""},
		{"X", "http://{host}/", ""},
		{"X", "http://user:pa#ss@db:5432", ""},
		// Templates and variables.
		{"X", "http://$(HOST):80/", ""},
		{"X", "http://${HOST}.payments.svc:80/ http://ledger:81", "http://ledger:81"},
		{"X", "http://{{ .Release.Name }}-db:5432", ""},
		{"X", "http://db-{{ .Release.Name }}:5432", ""},
		{"X", "http://db$SUFFIX/x", ""},
		{"X", "http://db:${PORT}/x", "http://db"},
		{"X", "http://db:%(port)s/x", "http://db"},
		{"X", "http://%(host)s/x", ""},
		{"X", "http://db/$request_uri", "http://db"},
		{"X", "postgres://$(USER):$(PW)@db:5432/x", "postgres://db:5432"},
		{"X", "$(SCHEME)://ledger:80", "ledger:80?"},
		{"DB_HOST", "$(DB_HOST)", ""},
		{"DB_HOST", "db.$(NS).svc.cluster.local", ""},
		{"DB_HOSTS", "$(A):80,db:80", "db:80"},
		{"DB_HOST", "%s.payments.svc", ""},
		{"DB_HOST", "__DB_HOST__", ""},
		{"DB_HOST", "<your-host>", ""},
		{"DB_HOST", "@DB_HOST@", ""},
		// JDBC and other DSN.
		{"X", "jdbc:postgresql://db:5432/x?user=a&password=b", "postgresql://db:5432"},
		{"X", "jdbc:mysql:loadbalance://a:3306,b:3306/x", "mysql://a:3306 mysql://b:3306"},
		{"X", "jdbc:sqlserver://db:1433;databaseName=x", "sqlserver://db:1433"},
		{"X", "jdbc:oracle:thin:@//db:1521/s", "oracle://db:1521"},
		{"X", "jdbc:oracle:thin:@db:1521:sid", "oracle://db:1521"},
		{"X", "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=db)(PORT=1521))(CONNECT_DATA=(SID=x)))", "db:1521"},
		{"X", "jdbc:h2:mem:test", ""},
		{"X", "user:pw@tcp(db:3306)/x?parseTime=true", "db:3306"},
		{"X", "user:pw@tcp(db)/x", "db"},
		{"X", "user:pw@unix(/run/x)/x", ""},
		{"X", "host=db port=5432 user=u dbname=x sslmode=disable", "db:5432"},
		{"X", "host=a,b port=5432 dbname=x", "a:5432 b:5432"},
		{"X", "host=/var/run/postgresql dbname=x", ""},
		{"X", "Server=db;Port=3306;Database=x;Uid=u;Pwd=p", "db:3306"},
		{"X", "Server=tcp:db,1433;Initial Catalog=x;User ID=u", "db:1433"},
		{"X", `Data Source=db\inst;Initial Catalog=x`, "db"},
		{"X", "Host=db;Database=x", "db"},
		{"OTEL_RESOURCE_ATTRIBUTES", "host.name=foo,service.name=x", ""},
		{"X", "host=foo,color=red", ""},
		// Keys that name hosts.
		{"DB_HOST", "db", "db"},
		{"DB_HOST", "db.payments", "db.payments"},
		{"DB_HOST", "db.cache", "db.cache"},
		{"DB_HOSTNAME", "db", "db"},
		{"DB_HOST_NAME", "db", "db"},
		{"DB_HOST_READ", "db-ro", "db-ro"},
		{"DB_HOST_1", "db-1", "db-1"},
		{"dbHost", "db", "db"},
		{"LEDGER_ADDR", "ledger:8443", "ledger:8443"},
		{"LEDGER_ADDRESS", "ledger", "ledger"},
		{"LEDGER_ENDPOINT", "ledger", "ledger?"},
		{"LEDGER_SERVER", "ledger", "ledger?"},
		{"LEDGER_UPSTREAM", "ledger", "ledger?"},
		{"LEDGER_URL", "ledger", "ledger?"},
		{"LEDGER_URL", "ledger:8080/path", "ledger:8080"},
		{"HOST", "ledger", "ledger?"},
		{"KAFKA_BROKERS", "a:9092,b:9092", "a:9092 b:9092"},
		{"KAFKA_BOOTSTRAP_SERVERS", "kafka-0.kafka:9092, kafka-1.kafka:9092", "kafka-0.kafka:9092 kafka-1.kafka:9092"},
		{"SPRING_KAFKA_BOOTSTRAP_SERVERS", "kafka", "kafka"},
		{"ZOOKEEPER_CONNECT", "zk-0:2181,zk-1:2181/kafka", "zk-0:2181 zk-1:2181"},
		{"ZOO_SERVERS", "server.1=zk-0:2888:3888;2181 server.2=zk-1:2888:3888;2181", "zk-0:2888 zk-1:2888"},
		{"MEMCACHED_SERVERS", "memcached:11211:1", "memcached:11211"},
		{"SYSLOG_TARGET", "udp:syslog:514", "syslog:514"},
		{"STORE", "dnssrv+_grpc._tcp.thanos-store.monitoring.svc", "dnssrv://_grpc._tcp.thanos-store.monitoring.svc"},
		{"DB_HOST", "db.", "db."},
		{"DB_HOST", `"db"`, "db"},
		{"DB_HOST", "192.0.2.1", ""},
		{"DB_HOST", "2001:db8::1", ""},
		{"DB_HOST", "localhost", ""},
		{"DB_HOST", "::", ""},
		{"DB_HOST", "*", ""},
		{"DB_HOST", "true", ""},
		{"DB_HOST", "/var/run/mysqld.sock", ""},
		{"DB_HOST", "0x7f000001", ""},
		{"LEDGER_SERVER", "Apache Tomcat", ""},
		{"LEDGER_SERVER", "config.yaml", ""},
		{"LEDGER_ENDPOINT", "/api/v1", ""},
		{"LEDGER_ENDPOINT", "production", ""},
		{"LEDGER_ENDPOINT", "apps/v1", ""},
		{"QUEUE_CONNECTION", "redis", ""},
		{"CACHE_BACKEND", "memcached", ""},
		// host:port where the key says nothing.
		{"LEDGER", "ledger:8443", "ledger:8443?"},
		{"CACHE", "memcached:11211,memcached-2:11211", "memcached:11211? memcached-2:11211?"},
		{"IMAGE", "redis:6379", ""},
		{"SIDECAR", "nginx:1.25", ""},
		{"SIDECAR", "redis:7", ""},
		{"X", "registry.example.org/team/app:1", ""},
		{"X", "registry.example.org/team/app:2024", ""},
		{"X", "12:30", ""},
		{"X", "2024-01-01T12:30:00Z", ""},
		{"X", "main.go:1234", ""},
		{"X", "max:1000,ttl:3600", ""},
		{"X", "user:pw:8080", ""},
		{"X", "1000:1000", ""},
		{"RUN_AS", "app:1000", ""},
		{"X", "sha256:1234", ""},
		{"X", "arn:aws:iam::123456789012:role/x", ""},
		{"X", "admin@example.org", ""},
		{"MAIL_FROM", "admin@example.org", ""},
		{"SMTP_URL", "admin@example.org", ""},
		{"X", "ws:2048x", ""},
		{"X", ":8080", ""},
		{"X", "0.0.0.0:8080", ""},
		{"X", "[::]:8080", ""},
		{"X", `C:\Program Files\x`, ""},
		// Keys that hold other things.
		{"NAMESPACE", "default", ""},
		{"POD_NAMESPACE", "ledger", ""},
		{"HOSTNAME", "api-0", ""},
		{"LISTEN_ADDR", "api:8080", ""},
		{"BIND_ADDRESS", "api", ""},
		{"KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://kafka-0:9092", ""},
		{"ALLOWED_HOSTS", "api,api.example.org", ""},
		{"TRUSTED_HOSTS", "api,api.example.org", ""},
		{"SMTP_HELO_HOST", "mail", ""},
		{"API_AUDIENCES", "https://api", ""},
		{"EUREKA_INSTANCE_HOSTNAME", "api", ""},
		{"report_host", "db", ""},
		{"NO_PROXY", "localhost,.svc,ledger.payments.svc.cluster.local,192.0.2.0/24", ""},
		{"no_proxy", "ledger", ""},
		{"HTTP_PROXY", "http://proxy:3128", "http://proxy:3128"},
		{"CORS_ORIGINS", "https://www.example.org", ""},
		{"OAUTH_REDIRECT_URI", "https://www.example.org/cb", ""},
		{"PUBLIC_URL", "https://www.example.org", ""},
		{"REACT_APP_API_URL", "https://api.example.org", ""},
		{"NEXT_PUBLIC_API_URL", "https://api.example.org", ""},
		{"TLS_SERVER_NAME", "ledger.payments.svc", ""},
		{"EMAIL_ADDRESS", "root", ""},
		{"COOKIE_DOMAIN", "example.org", ""},
		{"LOG_LEVEL", "debug", ""},
		{"VERSION", "1.2.3", ""},
		{"APP_VERSION", "v1.2.3-rc.1", ""},
		{"DRIVER", "org.postgresql.Driver", ""},
		{"MAIN_CLASS", "com.example.svc.Main", ""},
		{"ACCEPT", "application/json", ""},
		{"SCHEDULE", "*/5 * * * *", ""},
		{"API_VERSION", "apps/v1", ""},
		{"CRD", "widgets.example.org", ""},
		{"LABEL", "example.org/team=payments", ""},
		{"TIMEOUT", "30s", ""},
		{"MEMORY", "1.5Gi", ""},
		{"SEARCH", "payments.svc.cluster.local", ""},
		{"DNS.1", "webhook.payments.svc", ""},
		{"csr.CN", "webhook.payments.svc", ""},
		{"$id", "https://example.org/x.json", ""},
		{"BUS_DESTINATION", "org.example.Bus", ""},
		{"DOCKER_REGISTRY", "registry.example.org", ""},
		{"SED_ADDRESS", "s,a,^b*$,g", ""},
		{"DB_HOSTS", "a,x-$(Y),b", "a b"},
		{"KEYGEN", "rsa:4096", ""},
		// How the workload itself is called or seen.
		{"KC_HOSTNAME", "auth", ""},
		{"KC_HOSTNAME_URL", "https://auth.example.org", ""},
		{"KC_HOSTNAME_ADMIN_URL", "https://auth", ""},
		{"KC_DB_URL_HOST", "db", "db"},
		{"KEYCLOAK_FRONTEND_URL", "https://auth/auth", ""},
		{"KEYCLOAK_URL", "https://auth/auth", "https://auth"},
		{"NEXTAUTH_URL", "http://web:3000", ""},
		{"NEXTAUTH_URL_INTERNAL", "http://web:3000", "http://web:3000"},
		{"WP_HOME", "http://blog", ""},
		{"WP_SITEURL", "http://blog", ""},
		{"WP_REDIS_HOST", "redis", "redis"},
		{"GF_SERVER_DOMAIN", "grafana.example.org", ""},
		{"GF_SERVER_ROOT_URL", "http://grafana", ""},
		{"GF_DATABASE_HOST", "db:5432", "db:5432"},
		{"MAIL_SERVER_DOMAIN", "example.org", ""},
		{"NGINX_HOST", "web", ""},
		{"NGINX_HOSTNAME", "web", ""},
		{"NGINX_BACKEND_HOST", "web", "web"},
		{"DD_HOSTNAME", "node-1", ""},
		{"DD_AGENT_HOST", "datadog", "datadog"},
		{"NODE_HOSTNAME", "node-1", ""},
		{"MACHINE_HOSTNAME", "node-1.example.org", ""},
		{"CLIENT_HOSTNAME", "api", ""},
		{"NODE_HOST_NAME", "node-1", ""},
		{"HOST_NAME", "ledger", "ledger?"},
		{"hostName", "ledger", "ledger?"},
		{"PUBLIC_HOST_NAME", "ledger", ""},
		{"KNOWN_HOSTS", "git,git.example.org ssh-ed25519 AAAA", ""},
		{"SSH_KNOWN_HOSTS", "git ssh-rsa AAAA\nhttp://git x\n", ""},
		{"KNOWN_PEERS", "a:1", "a:1"},
		{"RELAY_TLS_AUTO_HOSTS", "relay,relay.example.org", ""},
		{"MONGO_TLS_HOSTS", "a,b", "a b"},
		{"LETSENCRYPT_HOST", "www.example.org", ""},
		{"REDIS_ANNOUNCE_HOSTNAME", "redis-0", ""},
		{"wsrep_node_address", "galera-0.galera", ""},
		{"wsrep_sst_receive_address", "galera-0:4444", ""},
		{"wsrep_cluster_address", "gcomm://galera-0.galera,galera-1.galera", "gcomm://galera-0.galera? gcomm://galera-1.galera?"},
		{"dubbo.protocol.host", "api", ""},
		{"DUBBO_PROTOCOL_HOST", "api", ""},
		{"dubbo.registry.address", "zookeeper://zk:2181", "zookeeper://zk:2181"},
		{".host", "x", ""},
		// Branches.
		{"GIT_UPSTREAM", "ledger", ""},
		{"GIT_SYNC_UPSTREAM", "main", ""},
		{"GIT_UPSTREAM_URL", "https://git/x", "https://git"},
		{"UPSTREAM", "main", ""},
		{"UPSTREAM", "master", ""},
		{"UPSTREAM", "origin", ""},
		{"UPSTREAM", "develop", ""},
		{"UPSTREAM", "HEAD", ""},
		{"UPSTREAM", "origin/main", ""},
		{"UPSTREAM", "main:8080", "main:8080"},
		// Names of objects.
		{"caSecretName", "webhook.payments.svc.c", ""},
		{"TLS_SECRET", "webhook.payments.svc", ""},
		{"DB_SECRET", "postgres://db/x", "postgres://db"},
		{"LEADER_CONFIGMAP", "a.b.svc.c", ""},
		{"leaderConfigMapName", "a.b.svc.c", ""},
		{"ISSUER_NAME", "a.b.svc.c", ""},
		{"OIDC_ISSUER", "https://dex/", "https://dex"},
		{"INGRESS_CLASS", "a.b.svc.c", ""},
		// Members and ZooKeeper.
		{"KAFKA_ZOOKEEPER_CONNECT", "zk-0.zk,zk-1.zk", "zk-0.zk zk-1.zk"},
		{"KAFKA_ZOOKEEPER_CONNECT", "zk", "zk"},
		{"KAFKA_ZOOKEEPER_CONNECT", "zk:2181/chroot", "zk:2181"},
		{"KAFKA_CFG_ZOOKEEPER_CONNECT", "zk-0,zk-1:2181/kafka", "zk-0 zk-1:2181"},
		{"zookeeper.connect", "zk-0,zk-1", "zk-0 zk-1"},
		{"zookeeper.connection.timeout.ms", "6000", ""},
		{"HBASE_ZOOKEEPER_QUORUM", "zk-0,zk-1", "zk-0 zk-1"},
		{"QUORUM", "majority", ""},
		{"CONNECT", "ledger", ""},
		{"JOIN_MEMBERS", "loki-memberlist", "loki-memberlist"},
		{"RETRY_JOIN", "provider=k8s label_selector=app", ""},
		// Names under the cluster domain.
		{"X", "ledger.payments.svc.cluster.local", "ledger.payments.svc.cluster.local"},
		{"X", "ledger.payments.svc", "ledger.payments.svc"},
		{"X", "ledger.payments.svc:8443", "ledger.payments.svc:8443"},
		{"X", "ledger.payments.svc.corp.example", "ledger.payments.svc.corp.example?"},
		{"X", "10-0-0-1.payments.pod.cluster.local", "10-0-0-1.payments.pod.cluster.local"},
		{"X", "rabbit@rabbit-0.rabbit.mq.svc.cluster.local", "rabbit-0.rabbit.mq.svc.cluster.local"},
		{"X", "see ledger.payments.svc.cluster.local, and", "ledger.payments.svc.cluster.local"},
		{"X", ".payments.svc.cluster.local", ""},
		{"X", "*.payments.svc.cluster.local", ""},
		{"X", `ledger\.payments\.svc\.cluster\.local`, ""},
		{"X", "com.example.svc.impl", ""},
		// Values that hold options, JSON, text.
		{"JAVA_OPTS", "-Xmx1g -Dledger.url=http://ledger:80 -Dhttp.proxyHost=proxy -Dlistener.host=api", "http://ledger:80 proxy"},
		{"OPTS", "--brokers=a:9092 --name=foo:9000", "a:9092"},
		{"CONFIG", `{"ledger":{"url":"http://ledger"},"hosts":["a:1","b"],"x":"y"}`, "http://ledger a:1 b"},
		{"CONFIG", `{"labels":{"a":{"url":"http://label"}},"b":{"url":"http://b"}}`, "http://b"},
		{"CONFIG", `["http:\/\/ledger\/x"]`, "http://ledger"},
		{"CONFIG", "a: 1\nledger:\n  host: ledger\n", "ledger"},
	}
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			s := newScanner("cluster.local", Origin{Kind: Env})
			s.variable(tt.name, tt.value)
			if got := short(settle(s.found, nil)); got != tt.want {
				t.Errorf("%s=%s\n got %s\nwant %s", tt.name, tt.value, got, tt.want)
			}
		})
	}
}

func TestOptionsClusterDomain(t *testing.T) {
	got := short(FromText("x", "a.b.svc.corp.example c.d.svc.cluster.local", Options{ClusterDomain: "corp.example."}))
	if want := "a.b.svc.corp.example c.d.svc.cluster.local"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWithout(t *testing.T) {
	refs := FromText("x", "hosts=a:1,b.example.org:1,example.org:1,c.d.mesh.test:1\n\n\ny=1", Options{})
	got := short(Without(refs, []string{"A.", "*.example.org", "*.mesh.test"}))
	if want := "example.org:1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff(refs, Without(refs, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestOriginString(t *testing.T) {
	for want, o := range map[string]Origin{
		"env LEDGER_URL": {Kind: Env, Key: "LEDGER_URL"},
		"env LEDGER_URL from ConfigMap payments/api url": {Kind: Env, Key: "LEDGER_URL", Namespace: "payments", ConfigMap: "api", DataKey: "url"},
		"args --a=b:1":                              {Kind: Arg, Excerpt: "--a=b:1"},
		"command curl http://a/…":                   {Kind: Command, Excerpt: "curl http://a/…"},
		"ConfigMap payments/api application.yaml:4": {Kind: ConfigMap, Namespace: "payments", ConfigMap: "api", DataKey: "application.yaml", Line: 4},
	} {
		if got := o.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
