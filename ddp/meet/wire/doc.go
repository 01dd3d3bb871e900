// Package wire has the bytes that ranks exchange to meet: the handshake of every connection, and the frames of the control connection. It is pure: values
// to bytes and back. Package meet moves them, and has the manual of the protocol.
//
// # Handshake
//
// Little endian. The client speaks first; each side proves that it knows the job's token, without sending it.
//
//	hello   8 B magic "gotrain\0" | u16 version | u16 kind (1 control, 2 data) | u32 to: the rank that is called
//	        u32 world | u32 rank | u32 generation | u32 stream | 32 B client nonce | u16 length + job
//	chall   32 B server nonce
//	proof   32 B HMAC-SHA256(token, "client" | hello | server nonce)
//	accept  u8 verdict | u16 length + reason | 32 B HMAC-SHA256(token, "server" | hello | server nonce | verdict | reason)
//
// Hello and proof together have at most 256 bytes, and a server reads no more before it knows the client. Magic and version keep their places in every
// version of the protocol, so both sides can name both versions. A refusal is signed too: a client may take it as the last word, while an unsigned one may
// come from another job that is about to free the port.
//
// # Frames
//
// A control connection then carries frames: u32 length | u8 kind | 3 zero bytes | payload. Numbers are varints, texts have their length in front. Every
// parser limits what it allocates by the bytes that are there, refuses bytes that are left over, and never decodes by reflection.
package wire
