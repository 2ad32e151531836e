package bridge

import (
	"strings"

	"github.com/emmer-proxy/emmer/bucket/script"
)

// Users are the rules of Redis ACL users that are enough for a bridge, and for nothing else.
type Users struct {
	Namespace string // DefaultNamespace if empty
	Cluster   bool
	Name      string // of the user
	Secret    string // as ACL SETUSER takes it: >password, or # and the password's SHA-256 in hex
}

// Redis is the ACL SETUSER command of the user on Redis itself: scripts, kill flags, overrides and
// readiness, on keys of the namespace alone. The commands that scripts run are checked too. INFO
// memory is for maxmemory-policy. Redis lets HELLO and AUTH pass for everybody.
func (u Users) Redis() string {
	commands := "+eval +evalsha +ping +info|memory +time +get +set +del +hget +hgetall +hmget +hset +hdel +pexpire"
	if u.Cluster {
		commands += " +cluster|slots"
	}
	// A key begins with the namespace and its layout's version, whatever its tag.
	prefix, _, _ := strings.Cut(script.Layout{Namespace: or(u.Namespace, DefaultNamespace)}.Ctl(), "{")
	return "ACL SETUSER " + u.Name + " reset on " + u.Secret + " ~" + prefix + "* " + commands
}

// Sentinel is the same of the user on each Sentinel.
func (u Users) Sentinel() string {
	return "ACL SETUSER " + u.Name + " reset on " + u.Secret +
		" &+switch-master &+replica-reconf-done +ping +subscribe +sentinel|get-master-addr-by-name +sentinel|sentinels"
}
