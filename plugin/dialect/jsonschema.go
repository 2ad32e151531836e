package dialect

// node says what to do with the values in one place of a document. A schema is a slice of nodes;
// node 0 stands for "not named" and node 1 for the root.
type node struct {
	fields []field // members that are read, if the value is an object; at most 32
	other  uint8   // node of all other members; their keys are handed on by jsonHandler.key
	elem   uint8   // node of the elements, if it is an array
	kinds  kinds   // what it may be, besides null below the root; 0 = anything
	want   string  // completes "<path> must be ..."
	text   bool    // strings are handed on by jsonHandler.text
	value  bool    // short strings are handed on by jsonHandler.value
	raw    kinds   // whole values of these kinds are handed on by jsonHandler.raw
	snake  bool    // members may be written in snake_case too: max_tokens for maxTokens
}

type field struct {
	key  string
	node uint8
}

type kinds uint8

const (
	kindObject kinds = 1 << iota
	kindArray
	kindString
	kindNumber
	kindTrue
	kindFalse
	kindNull

	kindBool = kindTrue | kindFalse
	kindAny  = kindNull<<1 - 1
)

// jsonHandler hears of the values that the schema names, in document order. A complaint that is
// not empty refuses the document: it completes "<path> ...".
type jsonHandler interface {
	// begin opens a value of a named place; objects and arrays are closed by end, which also says
	// whether there was nothing in them.
	begin(n uint8, k kinds) (complaint string)
	end(n uint8, k kinds, empty bool)
	// key is a part of the inside of a key, as written, in an object of place n; its value follows.
	key(n uint8, p []byte, last bool)
	// text is a part of the inside of a string, as written.
	text(n uint8, p []byte, last bool)
	// value is a number, or the inside of a string of at most maxHeld bytes, as written.
	value(n uint8, k kinds, p []byte) (complaint string)
	// raw is a part of a value as written, white space outside of strings left out.
	raw(n uint8, p []byte, last bool)
}
