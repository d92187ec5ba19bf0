package load

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dnsmesh/kubectl-dnsmesh/pkg/finding"
)

const (
	kindJob     = "Job"
	kindCronJob = "CronJob"
	// deploymentConfigLabel is set by OpenShift on the pods of a DeploymentConfig.
	deploymentConfigLabel = "deploymentconfig"
	// rolloutHashLabel is what Argo Rollouts puts in the place of pod-template-hash.
	rolloutHashLabel = "rollouts-pod-template-hash"
	podHashLabel     = "pod-template-hash"
)

// podOwner names the workload that a user knows. Jobs stay Jobs here: whether a CronJob made one is known later.
//
// A ReplicaSet of a Deployment is named DEPLOYMENT-HASH with the hash as a label of its pods
// (pkg/controller/deployment/sync.go); the pods of a kubelet's own manifests are named NAME-NODE and owned by the node
// (pkg/kubelet/config/common.go).
func podOwner(m *metav1.ObjectMeta, node string) finding.Object {
	o := finding.Object{Kind: "Pod", Namespace: m.Namespace, Name: m.Name}
	ref := controller(m)
	if ref == nil {
		if _, static := m.Annotations[corev1.MirrorPodAnnotationKey]; static {
			o.Name = trimPart(m.Name, node)
		}
		return o
	}
	switch ref.Kind {
	case "Node":
		o.Name = trimPart(m.Name, ref.Name)
		return o
	case "ReplicaSet":
		if hash := m.Labels[rolloutHashLabel]; hash != "" && strings.HasSuffix(ref.Name, "-"+hash) {
			o.Kind, o.Name = "Rollout", trimPart(ref.Name, hash)
			return o
		}
		if hash := m.Labels[podHashLabel]; hash != "" && strings.HasSuffix(ref.Name, "-"+hash) {
			o.Kind, o.Name = "Deployment", trimPart(ref.Name, hash)
			return o
		}
	case "ReplicationController":
		if dc := m.Labels[deploymentConfigLabel]; dc != "" && strings.HasPrefix(ref.Name, dc+"-") {
			o.Kind, o.Name = "DeploymentConfig", dc
			return o
		}
	}
	o.Kind, o.Name = ref.Kind, ref.Name
	return o
}

// controller returns the owner that manages the object, or nil.
func controller(m *metav1.ObjectMeta) *metav1.OwnerReference {
	for i := range m.OwnerReferences {
		if r := &m.OwnerReferences[i]; r.Controller != nil && *r.Controller {
			return r
		}
	}
	return nil
}

func trimPart(name, last string) string {
	if short, ok := strings.CutSuffix(name, "-"+last); ok && short != "" && last != "" {
		return short
	}
	return name
}

// cronJobOfName returns the CronJob that made a Job of this name, judged by the name alone: the controller appends the
// scheduled time in minutes since 1970 (pkg/controller/cronjob/cronjob_controllerv2.go, getJobName). Minutes of the years
// 2015 to 2080 are told from a date such as 20240131, which is smaller. It returns "" for any other name.
func cronJobOfName(job string) string {
	i := strings.LastIndexByte(job, '-')
	if i <= 0 || len(job)-i-1 != 8 {
		return ""
	}
	if minutes, err := strconv.ParseUint(job[i+1:], 10, 32); err != nil || minutes < 24_000_000 || minutes > 58_000_000 {
		return ""
	}
	return job[:i]
}

// impliesHostname tells whether the controller gives each pod a host name of its own. Such a name is no property of the
// template, and it would make the specification of every pod a different one.
func impliesHostname(kind string) bool {
	return kind == "StatefulSet" || kind == kindJob || kind == kindCronJob
}
