package bridge

import (
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

type layout struct{ Namespace, Tag string }

func (l layout) Ctl() string            { return l.Namespace + ":1:{" + l.Tag + "}:ctl" }
func killField(scope, id string) string { return scope + ":" + id }
func killValue(until bucket.Millis, actor, reason string) string {
	return strconv.FormatInt(int64(until), 10) + "|" + actor + "|" + reason
}
func parseKill(v string) (bucket.Millis, string, string, bool) {
	p := strings.SplitN(v, "|", 3)
	if len(p) != 3 {
		return 0, "", "", false
	}
	n, err := strconv.ParseInt(p[0], 10, 64)
	return bucket.Millis(n), p[1], p[2], err == nil
}
