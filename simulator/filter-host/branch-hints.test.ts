import binaryen from 'binaryen';
import { expect, it } from 'vitest';
import { hintBranches } from './branch-hints.js';

const source = `(module
  (import "env" "seen" (func $seen (param i32)))
  (func (export "f") (param $x i32) (result i32)
    (if (i32.eq (local.get $x) (i32.const -1)) (then (call $seen (i32.const 1))))
    (if (i32.and (local.get $x) (i32.const 1)) (then (call $seen (i32.const 2))))
    (block $out
      (br_if $out (i32.ne (local.get $x) (i32.const -1)))
      (call $seen (i32.const 3)))
    (if (result i32) (local.get $x) (then (i32.const 10)) (else (i32.const 20)))))`;

type F = (x: number) => number;

function f(wasm: Uint8Array, seen: number[], probe?: (...args: never[]) => number): F {
  const env = { seen: (what: number) => void seen.push(what), ...(probe && { probe }) };
  return new WebAssembly.Instance(new WebAssembly.Module(wasm), { env }).exports.f as F;
}

function hinted(calls: readonly number[]): Uint8Array {
  return hintBranches(binaryen.parseText(source).emitBinary(), (module, probe) => {
    for (const x of calls) f(module, [], probe)(x);
  });
}

function hintsOf(wasm: Uint8Array): string[] {
  const text = binaryen.readBinary(wasm).emitText();
  return [...text.matchAll(/branch_hint "(.*?)"|(?<=\()(?:if|br_if)/g)].map(([found, hint]) => hint ?? found);
}

const usual = Array.from({ length: 100 }, (_, index) => index + 1);

it('tells of each branch that goes hardly ever, or almost always, where its condition leads', () => {
  expect(hintsOf(hinted(usual))).toEqual(['\\00', 'if', 'if', '\\01', 'br_if', '\\01', 'if']);
});

it('tells nothing of branches that were seen a few times only', () => {
  expect(hintsOf(hinted(usual.slice(0, 19)))).toEqual(['if', 'if', 'br_if', 'if']);
});

it('leaves a module that does the same, also where a hint is wrong', () => {
  const run = (wasm: Uint8Array) => {
    const seen: number[] = [];
    return [[-1, 0, 1, 2].map(f(wasm, seen)), seen];
  };
  expect(run(hinted(usual))).toEqual(run(binaryen.parseText(source).emitBinary()));
});
