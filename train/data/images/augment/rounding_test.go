package augment

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// A blend is a product and a sum, each rounded to float32: the values below would differ if a processor made one step of the two.
func TestBlendRoundsTwice(t *testing.T) {
	for _, alpha := range []float32{0.1, 0.37, 0.8, 1.2000000476837158, 1.9} {
		for a := range 256 {
			for b := range 256 {
				product := float32(float64(alpha) * float64(b-a)) // exact in float64
				sum := float32(float64(a) + float64(product))
				if got, want := blend(a, b, alpha), clamp(int(sum), 0, 255); got != want {
					t.Fatalf("blend(%d, %d, %g) = %d, want %d", a, b, alpha, got, want)
				}
			}
		}
	}
}

// Samples have the same bytes on every machine. The compiler may make one instruction of a product and a sum, with one rounding, where the processor has it
// (arm64, or amd64 with GOAMD64=v3), unless the product is converted first. So look at the code that it makes.
func TestNoFusedArithmetic(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles packages for arm64")
	}
	cmd := exec.Command("go", "build", "-gcflags=-S", "../..", "..", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("cannot compile for arm64: %v\n%.500s", err, out)
	}
	fused := regexp.MustCompile(`/(train/data/\S+\.go:\d+)\)\s+FN?M(ADD|SUB)[DS]\s`)
	asked := 0
	for line := range strings.Lines(string(out)) {
		m := fused.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if strings.HasPrefix(m[1], "train/data/images/render.go") { // math.FMA, which every machine computes alike
			asked++
			continue
		}
		t.Errorf("%s: a product and a sum became one instruction\nhint: convert the product: float64(x*y) + z", m[1])
	}
	if asked == 0 {
		t.Error("the pattern finds no fused instruction, not even that of math.FMA")
	}
}
