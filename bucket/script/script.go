// Package script is what stands between the model of package bucket and a Redis: the Lua scripts
// as fixed texts, the names of keys, the arguments of a call and the reading of its reply.
//
// It knows no connection, no HTTP and no clock; Redis' own TIME is the clock of every script. Its
// caller
//   - builds a Call with Layout.Reserve, Extend, Settle, Renew or Level, with a nonce it didn't use before,
//   - sends EVALSHA Script.SHA, and once EVAL Script.Text where the answer is NOSCRIPT,
//   - never repeats anything else blindly, except the very same call: every script is idempotent
//     by the reservation's id,
//   - gives the reply to the Decode function of the same name, which refuses a reply that another
//     caller was waiting for (ErrNonce),
//   - takes a Redis error reply that begins with "ERR emmer" as a fault of its own request.
//
// Layout 1 of the keys (<ns> and <tag> escaped like every other part, see part):
//
//	<ns>:1:{<tag>}:ctl                                    hash: kill flags; KEYS[1] of every script, no TTL
//	<ns>:1:{<tag>}:ovr                                    hash: overrides, the last key where they are looked for, no TTL
//	<ns>:1:{<tag>}:r:<id>                                 string: R, Q = reserved, S = settled or cancelled
//	<ns>:1:{<tag>}:l:<name>:<kind>:<span>:<entity>        hash: one limit of one entity
//	<ns>:1:{<tag>}:a:<of>                                 hash: how long the answers were, see bucket.Answer
//
// The README of package bucket lists the fields of a limit, the record and each script's arguments
// and reply. What is stored is what was used, so that a changed maximum, burst or rate forgives and
// takes nothing.
package script

import (
	"crypto/sha1" // Redis names scripts by it
	_ "embed"     // the texts
	"encoding/hex"
	"strings"
)

// Script is a fixed text.
type Script struct {
	Name string
	Text string
	SHA  string // hex, as EVALSHA wants it
}

var (
	//go:embed common.lua
	commonText string
	//go:embed rare.lua
	rareText string
	//go:embed shared.lua
	sharedText string
	//go:embed when.lua
	whenText string
	//go:embed kills.lua
	killsText string
	//go:embed answer.lua
	answerText string
	//go:embed override.lua
	overrideText string
	//go:embed extend.lua
	extendText string
	//go:embed reserve.lua
	reserveText string
	//go:embed settle.lua
	settleText string
	//go:embed renew.lua
	renewText string
	//go:embed level.lua
	levelText string
)

// The scripts. They are never changed.
var (
	Reserve = assemble("reserve", reserveText)
	Extend  = assemble("extend", extendText)
	Settle  = assemble("settle", settleText)
	Renew   = assemble("renew", renewText)
	Probe   = assemble("level", levelText) // only reads
)

// All lists the scripts, for those who load them ahead or name them in an allow-list.
func All() []*Script { return []*Script{Reserve, Extend, Settle, Renew, Probe} }

// rareEnd makes what rare.lua and shared.lua hold, once a limit of the call needs it.
const rareEnd = "function rare()\n  if not RARE then RARE=kinds() end\n  return RARE\nend\n"

// assemble makes one text of the common part and a body, in which --@<name> stands for a piece that
// several bodies have. The body is a function, so that the nonce is added to whatever it returns,
// except to an error.
func assemble(name, body string) *Script {
	body = strings.NewReplacer("--@kills\n", killsText, "--@override\n", overrideText, "--@when\n", whenText, "--@answer\n", answerText).Replace(body)
	text := commonText + rareText + sharedText + rareEnd + "local function main()\n" + body + "end\n" +
		"local R=main()\nif not R.err then R[#R+1]=ARGV[#ARGV] end\nreturn R\n"
	sum := sha1.Sum([]byte(text))
	return &Script{Name: name, Text: text, SHA: hex.EncodeToString(sum[:])}
}
