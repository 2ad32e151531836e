package buckettest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
)

// checkKeys walks over every key of a store: a TTL on all but ctl, long enough for every lease cell;
// integers only, none negative, none above 2^53.
func checkKeys(t testing.TB, r *Redis, now bucket.Millis) {
	t.Helper()
	ctx := context.Background()
	keys, err := r.Client.Keys(ctx, r.Layout.Namespace+":*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		ttl, err := r.Client.PTTL(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if key == r.Layout.Ctl() {
			if ttl != -1 {
				t.Errorf("%s has a TTL: %v", key, ttl)
			}
			continue
		}
		if ttl == -1 {
			t.Errorf("%s has no TTL", key)
			continue
		}
		if !strings.Contains(key, ":l:") || ttl < 0 {
			continue
		}
		fields, err := r.Client.HGetAll(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		for f, text := range fields {
			v, err := strconv.ParseInt(text, 10, 64)
			if err != nil || v < 0 || v > bucket.MaxAmount {
				t.Errorf("%s field %s is %q", key, f, text)
			}
			if f[0] == 'r' || f[0] == 'c' {
				deadline, _ := strconv.ParseInt(strings.Split(f[1:], ":")[0], 10, 64)
				if left := time.Duration(bucket.Millis(deadline)-now) * time.Millisecond; ttl < left {
					t.Errorf("%s expires in %v, a lease in it ends in %v", key, ttl, left)
				}
			}
		}
	}
}
