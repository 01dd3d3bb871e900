package remote

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Version is that of the protocol. An agent and its caller must have the same.
const Version = 1

// magic is what an agent prints first. Whatever a remote shell prints before it is no part of the protocol.
const magic = "\n\x00gotrain-agent\x01\n"

const (
	maxFrame  = 4 << 20   // bytes of a frame
	maxOutput = 64 << 10  // bytes of lines in a frame
	maxBanner = 256 << 10 // bytes in front of the magic
	headerLen = 5
)

// kind is what a frame is about.
type kind byte

// The frames of the protocol. Down: from the caller to the agent.
const (
	kindHello    kind = iota + 1 // both: Hello
	kindBeat                     // both: a sign of life
	kindAsk                      // down: Question
	kindAnswer                   // up: Answer
	kindFile                     // down: bytes of the file that was asked to be stored
	kindJob                      // down: job
	kindStarted                  // up: the ranks run, or Error says why they do not
	kindSignal                   // down: signal
	kindFinish                   // down: end what is left, and send all output
	kindFinished                 // up: this was the last output
	kindCredit                   // down: u32 bytes of output were taken
	kindOutput                   // up: u32 rank, u8 stream, whole lines
	kindProgress                 // up: u32 rank, text
	kindRecord                   // up: record
	kindExit                     // up: exit
	kindQuiet                    // up: no process of the job is left
	kindSay                      // up: a remark
	kindBye                      // down: end
	kindEnd
)

// errFrame is wrapped by errors about bytes that are not of the protocol.
var errFrame = errors.New("not the protocol of an agent")

// frame is one message.
type frame struct {
	kind    kind
	payload []byte
}

// append encodes a frame.
func (f frame) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.payload)))
	b = append(b, byte(f.kind))
	return append(b, f.payload...)
}

// message makes a frame of a value.
func message(k kind, v any) frame {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // all types of messages can be encoded
	}
	return frame{k, b}
}

// decode reads the value of a frame.
func (f frame) decode(v any) error {
	if err := json.Unmarshal(f.payload, v); err != nil {
		return fmt.Errorf("%w: frame %d: %w", errFrame, f.kind, err)
	}
	return nil
}

// readFrame reads one frame. Memory grows with what arrives, not with what the header says.
func readFrame(r io.Reader) (frame, error) {
	var h [headerLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	n, k := binary.LittleEndian.Uint32(h[:4]), kind(h[4])
	if n > maxFrame || k == 0 || k >= kindEnd {
		return frame{}, fmt.Errorf("%w: a frame of kind %d with %d bytes", errFrame, k, n)
	}
	var b bytes.Buffer
	if n <= maxOutput {
		b.Grow(int(n))
	}
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	return frame{k, b.Bytes()}, nil
}

// skipTo reads up to the end of the magic, and returns what came before it.
func skipTo(r io.ByteReader) (banner []byte, err error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return banner, err
		}
		banner = append(banner, c)
		if c == magic[len(magic)-1] && bytes.HasSuffix(banner, []byte(magic)) {
			return banner[:len(banner)-len(magic)], nil
		}
		if len(banner) > maxBanner {
			return banner, fmt.Errorf("%w: %d bytes and no agent", errFrame, len(banner))
		}
	}
}

// output is a frame with lines of a rank.
func output(rank int, stderr bool, lines []byte) frame {
	b := make([]byte, 5, 5+len(lines))
	binary.LittleEndian.PutUint32(b, uint32(rank))
	if stderr {
		b[4] = 1
	}
	return frame{kindOutput, append(b, lines...)}
}

// lines is the inverse of output.
func (f frame) lines() (rank int, stderr bool, lines []byte, err error) {
	if len(f.payload) < 5 || f.payload[4] > 1 {
		return 0, false, nil, fmt.Errorf("%w: output without a rank", errFrame)
	}
	return int(binary.LittleEndian.Uint32(f.payload)), f.payload[4] == 1, f.payload[5:], nil
}

// credit reads the bytes that were taken.
func credit(f frame) (int, error) {
	if len(f.payload) != 4 {
		return 0, fmt.Errorf("%w: credit of %d bytes", errFrame, len(f.payload))
	}
	return int(min(window, binary.LittleEndian.Uint32(f.payload))), nil
}
