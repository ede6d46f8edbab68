import binaryen from 'binaryen';
import { expect, it } from 'vitest';
import { inAnotherOrder } from './function-orders.js';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const functions = NAMES.map(
  (name, index) => `(func $${name} (export "${name}") (param $x i32) (result i32)
    (@metadata.code.branch_hint "\\00")
    (if (result i32) (i32.eqz (local.get $x)) (then (i32.const ${index})) (else (call $h (i32.const 0)))))`,
);
const module = binaryen.parseText(`(module ${functions.join(' ')})`).emitBinary();

function answers(wasm: Uint8Array): number[] {
  const exports = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports;
  return NAMES.flatMap((name) => [0, 1].map((x) => (exports[name] as (x: number) => number)(x)));
}

function text(wasm: Uint8Array): string {
  return binaryen.readBinary(wasm).emitText();
}

it('a module with its functions in another order does the same and keeps its branch hints', () => {
  const other = inAnotherOrder(module, 1);
  expect(answers(other)).toEqual(answers(module));
  expect(text(other).match(/branch_hint/g)).toHaveLength(NAMES.length);
});

it('a seed stands for one order', () => {
  const [first, again, second] = [1, 1, 2].map((seed) => text(inAnotherOrder(module, seed)));
  expect(again).toBe(first);
  expect(second).not.toBe(first);
  expect(first).not.toBe(text(module));
});
