// Package resolve says what a host name resolves to, without asking anybody: models of the stub resolvers of glibc,
// musl and Go, of the resolv.conf that a kubelet gives a pod, and of what CoreDNS's kubernetes plugin and kube-dns
// answer for names under the cluster domain.
//
// The parts meet in Walk: a resolver, a configuration and a host name give a sequence of queries, and each query is put
// to a callback. The callback may be a model of a server (ClusterServer.Answer), a table of a test, or a front of a
// real server, so one table can judge the models and the programs they stand for.
//
// A model may not know an answer, for instance that of a name outside the cluster domain. Such an answer is marked
// (Answer.Known is false) and Result keeps apart what is certain and what hangs on it.
//
// All names inside the package are absolute and lower case with a final dot; Absolute is the one way in.
package resolve
