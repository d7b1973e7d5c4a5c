// Piecewise linear activations chosen by `where`, with jumps and with pieces that differ from channel to channel.
#include "rule_cases.h"

namespace hetnn::passes {

const Cases& piece_cases() {
  static const Cases cases = {
      {
          // Beyond 0.5 slope 2, below -0.25 slope 0.125.
          {"pieces_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %l = constant() {value = f32[] {-0.25}} : f32[]
  %r = constant() {value = f32[] {2}} : f32[]
  %s = constant() {value = f32[] {0.125}} : f32[]
  %ch = ge(%x, %h) : bool[2,3]
  %cl = le(%x, %l) : bool[2,3]
  %xh = sub(%x, %h) : f32[2,3]
  %mh = mul(%xh, %r) : f32[2,3]
  %ah = add(%mh, %h) : f32[2,3]
  %xl = sub(%x, %l) : f32[2,3]
  %ml = mul(%s, %xl) : f32[2,3]
  %al = add(%l, %ml) : f32[2,3]
  %i = where(%cl, %al, %x) : f32[2,3]
  %y = where(%ch, %ah, %i) : f32[2,3]
})",
           "maximum minimum sub relu mul add sub relu mul sub", 1e-6, Values::edge},
          // Shrinks towards 0 by 0.5.
          {"pieces_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %n = constant() {value = f32[] {-0.5}} : f32[]
  %z = constant() {value = f32[] {0}} : f32[]
  %a = abs(%x) : f32[2,3]
  %c = gt(%a, %h) : bool[2,3]
  %p = gt(%x, %z) : bool[2,3]
  %xh = sub(%x, %h) : f32[2,3]
  %xn = sub(%x, %n) : f32[2,3]
  %s = where(%p, %xh, %xn) : f32[2,3]
  %n0 = mul(%x, %z) : f32[2,3]
  %y = where(%c, %s, %n0) : f32[2,3]
})",
           "sub relu sub relu sub", 1e-6, Values::edge},
          // The same as torch takes it apart.
          {"pieces_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[] {0.5}} : f32[]
  %z = constant() {value = f32[] {0}} : f32[]
  %a = abs(%x) : f32[2,3]
  %c = gt(%a, %h) : bool[2,3]
  %s = sign(%x) : f32[2,3]
  %m = mul(%s, %h) : f32[2,3]
  %d = sub(%x, %m) : f32[2,3]
  %n = mul(%x, %z) : f32[2,3]
  %y = where(%c, %d, %n) : f32[2,3]
})",
           "sub relu sub relu sub", 1e-6, Values::edge},
          // Conditions joined, slopes and knots of their own in each channel.
          {"pieces_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %h = constant() {value = f32[3] {0.5, 1, 0.25}} : f32[3]
  %l = constant() {value = f32[3] {-0.5, -1, -0.125}} : f32[3]
  %a = lt(%x, %h) : bool[2,3]
  %b = gt(%x, %l) : bool[2,3]
  %c = logical_and(%a, %b) : bool[2,3]
  %d = minimum(%x, %h) : f32[2,3]
  %e = maximum(%d, %l) : f32[2,3]
  %y = where(%c, %x, %e) : f32[2,3]
})",
           "maximum minimum", 0, Values::edge},
          // A tent: all slopes but one on the right of 0, and a value at 0.
          {"pieces_from_where", R"(graph @g {stage = imported} (%x: f32[2,3]) -> (%y) {
  %o = constant() {value = f32[] {1}} : f32[]
  %t = constant() {value = f32[] {2}} : f32[]
  %z = constant() {value = f32[] {0}} : f32[]
  %c = lt(%x, %o) : bool[2,3]
  %u = add(%x, %o) : f32[2,3]
  %r = relu(%u) : f32[2,3]
  %q = mul(%o, %x) : f32[2,3]
  %d = sub(%t, %q) : f32[2,3]
  %e = div(%d, %o) : f32[2,3]
  %v = add(%e, %o) : f32[2,3]
  %k = clamp(%v) {min = -3, max = 3} : f32[2,3]
  %w = neg(%k) : f32[2,3]
  %f = neg(%w) : f32[2,3]
  %n = logical_not(%c) : bool[2,3]
  %y = where(%n, %f, %r) : f32[2,3]
})",
           "maximum minimum sub relu minimum sub add", 1e-6, Values::edge},
      },
      {
          {"pieces_from_where", "the values are real", R"(graph @g {stage = imported} (%x: i32[2]) -> (%y) {
  %z = constant() {value = i32[] {0}} : i32[]
  %c = gt(%x, %z) : bool[2]
  %y = where(%c, %x, %z) : i32[2]
})"},
          {"pieces_from_where",
           "the result is a function of one value x of its type, linear between knots, as many in every channel",
           R"(graph @g {stage = imported} (%x: f32[2], %b: f32[2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = gt(%x, %z) : bool[2]
  %y = where(%c, %x, %b) : f32[2]
})"},
          // Slopes 1 and 2 cross at 1, slopes 1 and 1 nowhere.
          {"pieces_from_where",
           "the result is a function of one value x of its type, linear between knots, as many in every channel",
           R"(graph @g {stage = imported} (%x: f32[1,2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %s = constant() {value = f32[2] {2, 1}} : f32[2]
  %o = constant() {value = f32[] {1}} : f32[]
  %m = mul(%s, %x) : f32[1,2]
  %d = sub(%m, %o) : f32[1,2]
  %k = maximum(%d, %x) : f32[1,2]
  %c = gt(%x, %z) : bool[1,2]
  %y = where(%c, %k, %x) : f32[1,2]
})"},
          {"pieces_from_where",
           "the result is a function of one value x of its type, linear between knots, as many in every channel",
           R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %q = mul(%x, %x) : f32[2]
  %c = gt(%x, %z) : bool[2]
  %y = where(%c, %q, %z) : f32[2]
})"},
          // Nothing is followed through a convolution.
          {"pieces_from_where",
           "the result is a function of one value x of its type, linear between knots, as many in every channel",
           R"(graph @g {stage = imported} (%x: f32[1,1,1,2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %k = constant() {value = f32[1,1,1,2] {1, 2}} : f32[1,1,1,2]
  %w = constant() {value = f32[1,1,1,1] {3}} : f32[1,1,1,1]
  %m = conv2d(%k, %w, _) : f32[1,1,1,2]
  %c = gt(%m, %z) : bool[1,1,1,2]
  %y = where(%c, %x, %z) : f32[1,1,1,2]
})"},
          {"pieces_from_where", "its pieces meet", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %t = constant() {value = f32[] {0.5}} : f32[]
  %z = constant() {value = f32[] {0}} : f32[]
  %c = gt(%x, %t) : bool[2]
  %y = where(%c, %x, %z) : f32[2]
})"},
          // Of NaN these are 0, which no sum of NaN is.
          {"pieces_from_where", "NaN stays NaN: a comparison with it chooses a branch with x",
           R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %c = gt(%x, %z) : bool[2]
  %y = where(%c, %x, %z) : f32[2]
})"},
          {"pieces_from_where", "NaN stays NaN: a comparison with it chooses a branch with x",
           R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %l = lt(%x, %z) : bool[2]
  %g = gt(%x, %z) : bool[2]
  %c = logical_or(%l, %g) : bool[2]
  %r = relu(%x) : f32[2]
  %y = where(%c, %r, %z) : f32[2]
})"},
          // A value of its own at the knot alone.
          {"pieces_from_where", "its pieces meet", R"(graph @g {stage = imported} (%x: f32[2]) -> (%y) {
  %z = constant() {value = f32[] {0}} : f32[]
  %o = constant() {value = f32[] {1}} : f32[]
  %a = gt(%x, %z) : bool[2]
  %b = ge(%x, %z) : bool[2]
  %i = where(%b, %o, %x) : f32[2]
  %y = where(%a, %x, %i) : f32[2]
})"},
      }};
  return cases;
}

}  // namespace hetnn::passes
