package wire_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/meet/wire"
)

// The four messages of a handshake.
func Example() {
	token := []byte("secret of the job")
	hello := (&wire.Hello{Version: wire.Version, Kind: wire.Control, World: 2, Rank: 1, Job: "1234"}).Append(nil) // the nonces are random
	challenge := make([]byte, wire.NonceSize)
	proof := wire.Proof(token, hello, challenge)
	fmt.Println("the server believes the client:", wire.Proved(proof, token, hello, challenge))

	accept := wire.AppendAccept(nil, wire.Accepted, "", token, hello, challenge)
	verdict, length, _ := wire.ParseAcceptHead(accept)
	signature := accept[wire.AcceptHead+length:]
	fmt.Println("the client believes the server:", verdict, wire.Signed(signature, verdict, "", token, hello, challenge))
	// Output:
	// the server believes the client: true
	// the client believes the server: accepted true
}
