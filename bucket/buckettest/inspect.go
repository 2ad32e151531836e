package buckettest

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket"
)

// checkKeys walks over every key of a store (C89): a TTL on all but ctl and the overrides, long enough for every lease cell;
// integers only, none negative, none above 2^53.
func checkKeys(t testing.TB, r *Redis, now bucket.Millis) {
	t.Helper()
	ctx := context.Background()
	var keys []string
	list := func(ctx context.Context, c redis.Cmdable) error {
		more, err := c.Keys(ctx, r.Layout.Namespace+":*").Result()
		keys = append(keys, more...)
		return err
	}
	var err error
	if cluster, ok := r.Client.(*redis.ClusterClient); ok {
		var mu sync.Mutex
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			return list(ctx, c)
		})
	} else {
		err = list(ctx, r.Client)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		ttl, err := r.Client.PTTL(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if key == r.Layout.Ctl() || key == r.Layout.Overrides() {
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
