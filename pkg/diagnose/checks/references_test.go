package checks

import (
	"testing"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

// A command is offered only for clients that trace takes, and never with a name that a shell would read otherwise.
func TestTraceCommand(t *testing.T) {
	tests := []struct {
		host   string
		object finding.Object
		want   string
	}{
		{"my-app", finding.Object{Kind: "Deployment", Namespace: "shop", Name: "front"}, "kubectl dnsmesh trace my-app --from deploy/front -n shop"},
		{"db.shop.svc.", finding.Object{Kind: "Pod", Namespace: "shop", Name: "front-0"}, "kubectl dnsmesh trace db.shop.svc. --from pod/front-0 -n shop"},
		{"my-app", finding.Object{Kind: "CronJob", Namespace: "shop", Name: "night"}, "kubectl dnsmesh trace my-app --from cronjob/night -n shop"},
		{"my-app", finding.Object{Kind: "Rollout", Namespace: "shop", Name: "front"}, ""},
		{"my-app", finding.Object{Kind: "File", Name: "resolv.conf"}, ""},
		{"my-app;reboot", finding.Object{Kind: "Deployment", Namespace: "shop", Name: "front"}, ""},
		{"--from", finding.Object{Kind: "Deployment", Namespace: "shop", Name: "front"}, ""},
		{"my-app", finding.Object{Kind: "Deployment", Namespace: "shop", Name: "$(reboot)"}, ""},
		{"my-app", finding.Object{Kind: "Deployment", Namespace: "sh\nop", Name: "front"}, ""},
	}
	for _, test := range tests {
		l := &lookup{host: test.host, client: &client{object: test.object}}
		if got := l.traceCommand(); got != test.want {
			t.Errorf("trace of %q from %v: %q, want %q", test.host, test.object, got, test.want)
		}
	}
}
