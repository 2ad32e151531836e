package shell

// closeStream is the host's proxy_close_stream, whose types for HTTP the SDK leaves out.
//
//go:wasmimport env proxy_close_stream
func closeStream(kind uint32) uint32
