package core

import (
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/plugin/config"
)

// The two entries of a chain find each other by filter state that the first one sets for each
// exchange: "tag.id", the VM's random tag and the exchange's number in it. Clients can't set it and
// upstream never sees it. Request ids and connection ids are no keys: a client can repeat the one,
// HTTP/2 shares the other (both met the wrong partner on Envoy 1.40).

// Partner is what a gate learns from the key.
type Partner uint8

const (
	PartnerHere   Partner = iota + 1 // exchange n of this VM
	PartnerPassed                    // the first entry let this exchange pass for good
	PartnerDeny                      // no partner, or one in another VM: refuse, by policy
	PartnerPass                      // the same, but the policy is to pass
)

// PairKey is the key of an exchange that is metered; PassKey of one that is not.
func PairKey(tag string, n uint64) string { return tag + "." + strconv.FormatUint(n, 10) }

// PassKey is the key of an exchange that the first entry lets pass.
func PassKey(tag string) string { return tag + ".pass" }

// FindPartner reads a key at the gate of a VM whose tag is given.
func FindPartner(c *config.Compiled, key, tag string) (Partner, uint64) {
	t, n, ok := strings.Cut(key, ".")
	switch {
	case ok && n == "pass":
		return PartnerPassed, 0
	case ok && t == tag:
		if id, err := strconv.ParseUint(n, 10, 64); err == nil {
			return PartnerHere, id
		}
	case ok && c.Mismatch == config.MismatchPass:
		// An update reached one entry before the other: policy pass lets the call go on as if
		// there were one entry; a refusal may then reach upstream.
		return PartnerPass, 0
	}
	return PartnerDeny, 0
}
