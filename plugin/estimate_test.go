package main

import (
	"testing"

	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// estimate is the input tokens that the plan counts for a body, asked of the pure core.
func estimate(t *testing.T, s *site, body string) int {
	t.Helper()
	return int(planOf(t, s, body).Input)
}

func planOf(t *testing.T, s *site, body string) *plan.Plan {
	t.Helper()
	p, refusal := plan.Build(s.config, dialect.OpenAIChat, plan.Caller{Values: []string{"k"}}, []byte(body), 0)
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	return p
}
