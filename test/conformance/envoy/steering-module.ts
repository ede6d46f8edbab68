import binaryen from 'assemblyscript/binaryen';
import { CLUSTER_HEADER, DESTINATION_HEADER, HASH_HEADER, RETRIES_HEADER } from '../../../wire/names.js';

/** Request headers by which a test tells the module below what to decide. */
export const decide = {
  cluster: 'x-test-cluster',
  destination: 'x-test-destination',
  retries: 'x-test-retries',
  hash: 'x-test-hash',
} as const;
/** A request with this header makes the module trap. */
export const TRAP_HEADER = 'x-test-trap';

/**
 * A filter that decides what the test says: it copies the headers of `decide` to those that steer Envoy. What it does
 * to Envoy is what the real one does, without a snapshot.
 */
export function steeringModule(): Uint8Array {
  const text = new TextEncoder();
  const strings: string[] = [];
  let end = 16;
  const constant = (value: string): string => {
    const start = end;
    strings.push(`(data (i32.const ${start}) ${JSON.stringify(value)})`);
    end += text.encode(value).length;
    return `(i32.const ${start}) (i32.const ${end - start})`;
  };
  const moves = [
    [decide.cluster, CLUSTER_HEADER],
    [decide.destination, DESTINATION_HEADER],
    [decide.retries, RETRIES_HEADER],
    [decide.hash, HASH_HEADER],
  ].map(([from, to]) => `(call $copy ${constant(from!)} ${constant(to!)})`);
  const trap = constant(TRAP_HEADER);
  const module = binaryen.parseText(`(module
    (import "env" "proxy_get_header_map_value" (func $get (param i32 i32 i32 i32 i32) (result i32)))
    (import "env" "proxy_replace_header_map_value" (func $set (param i32 i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    ${strings.join('\n')}
    (global $free (mut i32) (i32.const 4096))
    (func (export "proxy_abi_version_0_2_1"))
    (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
      (global.set $free (i32.add (global.get $free) (local.get $size)))
      (i32.sub (global.get $free) (local.get $size)))
    (func $copy (param $from i32) (param $fromSize i32) (param $to i32) (param $toSize i32)
      (if (i32.eqz (call $get (i32.const 0) (local.get $from) (local.get $fromSize) (i32.const 0) (i32.const 4)))
        (then (drop (call $set (i32.const 0) (local.get $to) (local.get $toSize)
          (i32.load (i32.const 0)) (i32.load (i32.const 4)))))))
    (func $trap (param $name i32) (param $size i32)
      (if (i32.eqz (call $get (i32.const 0) (local.get $name) (local.get $size) (i32.const 0) (i32.const 4)))
        (then (unreachable))))
    (func (export "proxy_on_vm_start") (param i32 i32) (result i32) (i32.const 1))
    (func (export "proxy_on_configure") (param i32 i32) (result i32) (i32.const 1))
    (func (export "proxy_on_context_create") (param i32 i32))
    (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
      (global.set $free (i32.const 4096))
      (call $trap ${trap})
      ${moves.join('\n')}
      (i32.const 0)))`);
  const bytes = module.emitBinary();
  module.dispose();
  return bytes;
}
