package bpe

// The rules by which a text is cut, as a machine that takes one character at a time. OpenAI writes
// them as regular expressions; in their order of preference,
//
//	o200k:  P? (Lu Lt Lm Lo M)* (Ll Lm Lo M)+ C?  |  P? (Lu Lt Lm Lo M)+ (Ll Lm Lo M)* C?
//	cl100k: C  |  P? L+
//	both:   N{1,3}  |  ' '? X+ (CR LF)*  |  S* (CR LF)+  |  S+ (not before text)  |  S+
//
// where P is one character but CR, LF, letter or number, C is 's 't 'm 'd 're 've 'll in any case, S
// is white space, and X is what is no white space, letter or number. o200k also takes / among the
// CR LF behind X.
//
// Where a choice depends on what follows, the machine goes on and remembers where the piece would
// have ended: the mark.
const (
	atStart = iota
	inBlank // one ' '
	inGap   // one other white space
	inOpen  // one character that may open a word or a run of punctuation
	inUpper // letters that may all be capitals; the mark is behind the last that is none
	inLower // letters behind a small one
	inWord  // letters, of cl100k
	inOne   // one number
	inTwo   // two numbers
	inPunct // punctuation
	inTail  // line ends behind punctuation
	inWhite // white space; the mark is behind the last line end, last is at its last character
)

// What a step does, in its upper half; its lower half is the next state.
const (
	goOn     = iota << 4 // takes the character
	setMark              // takes the character; the mark is behind it
	setLast              // takes the character; last is at it
	endHere              // the piece ends before the character
	endWord              // the same, or behind a contraction that begins here
	endUpper             // ends at the mark if there is one before this character, else as endWord
	endWhite             // ends at the mark, or else at last
	endText              // ends at the mark, or else here
	endThird             // takes the character; the piece ends behind it
	tryQuote             // a piece of its own if a contraction begins here, else goes on
)

const (
	toBlank  = setLast | inBlank
	toGap    = setLast | inGap
	toOpen   = goOn | inOpen
	toUpper  = goOn | inUpper
	toMarked = setMark | inUpper
	toLower  = goOn | inLower
	toWord   = goOn | inWord
	toOne    = goOn | inOne
	toTwo    = goOn | inTwo
	toPunct  = goOn | inPunct
	toTail   = goOn | inTail
	toWhite  = setLast | inWhite
	toLine   = setMark | inWhite
	orQuote  = tryQuote | inOpen
)

// Columns: other, lower, upper, caseless, mark, number, space, line, blank, quote, slash, end.
var o200kSteps = [16][16]uint8{
	atStart: {toOpen, toLower, toUpper, toMarked, toMarked, toOne, toGap, toLine, toBlank, toOpen, toOpen, endHere},
	inBlank: {toPunct, toLower, toUpper, toMarked, toMarked, endHere, toWhite, toLine, toWhite, toPunct, toPunct, endHere},
	inGap:   {endHere, toLower, toUpper, toMarked, toMarked, endHere, toWhite, toLine, toWhite, endHere, endHere, endHere},
	inOpen:  {toPunct, toLower, toUpper, toMarked, toMarked, endHere, endHere, toTail, endHere, toPunct, toPunct, endHere},
	inUpper: {endUpper, toLower, toUpper, toMarked, toMarked, endUpper, endUpper, endUpper, endUpper, endUpper, endUpper, endUpper},
	inLower: {endHere, toLower, endHere, toLower, toLower, endHere, endHere, endHere, endHere, endWord, endHere, endHere},
	inOne:   {endHere, endHere, endHere, endHere, endHere, toTwo, endHere, endHere, endHere, endHere, endHere, endHere},
	inTwo:   {endHere, endHere, endHere, endHere, endHere, endThird, endHere, endHere, endHere, endHere, endHere, endHere},
	inPunct: {toPunct, endHere, endHere, endHere, toPunct, endHere, endHere, toTail, endHere, toPunct, toPunct, endHere},
	inTail:  {endHere, endHere, endHere, endHere, endHere, endHere, endHere, toTail, endHere, endHere, toTail, endHere},
	inWhite: {endWhite, endWhite, endWhite, endWhite, endWhite, endWhite, toWhite, toLine, toWhite, endWhite, endWhite, endText},
}

var cl100kSteps = [16][16]uint8{
	atStart: {toOpen, toWord, toWord, toWord, toOpen, toOne, toGap, toLine, toBlank, orQuote, toOpen, endHere},
	inBlank: {toPunct, toWord, toWord, toWord, toPunct, endHere, toWhite, toLine, toWhite, toPunct, toPunct, endHere},
	inGap:   {endHere, toWord, toWord, toWord, endHere, endHere, toWhite, toLine, toWhite, endHere, endHere, endHere},
	inOpen:  {toPunct, toWord, toWord, toWord, toPunct, endHere, endHere, toTail, endHere, toPunct, toPunct, endHere},
	inWord:  {endHere, toWord, toWord, toWord, endHere, endHere, endHere, endHere, endHere, endHere, endHere, endHere},
	inOne:   {endHere, endHere, endHere, endHere, endHere, toTwo, endHere, endHere, endHere, endHere, endHere, endHere},
	inTwo:   {endHere, endHere, endHere, endHere, endHere, endThird, endHere, endHere, endHere, endHere, endHere, endHere},
	inPunct: {toPunct, endHere, endHere, endHere, toPunct, endHere, endHere, toTail, endHere, toPunct, toPunct, endHere},
	inTail:  {endHere, endHere, endHere, endHere, endHere, endHere, endHere, toTail, endHere, endHere, endHere, endHere},
	inWhite: {endWhite, endWhite, endWhite, endWhite, endWhite, endWhite, toWhite, toLine, toWhite, endWhite, endWhite, endText},
}
