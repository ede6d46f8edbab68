import { linearMemories } from './linear-memory.js';
import { runLoad } from './load.js';
import type { Variant } from './variants.js';
import type { World } from './world.js';

const CONNECTIONS = 16;
/** Of ten requests this many have their key in a body of 2 KB, the others in a header. */
const BODIES = 1;

/** Sends many requests through the filter and says what became of the linear memories in Envoy. */
export async function checkEnvoyMemory(
  { envoyPid, loadCommand }: World,
  variants: readonly Variant[],
  requests: number,
  signal: AbortSignal,
): Promise<string> {
  const send = async (name: Variant['name'], count: number): Promise<void> => {
    const { load } = variants.find((variant) => variant.name === name)!;
    await runLoad(loadCommand, { ...load, requests: count, connections: CONNECTIONS, chunks: 0 });
  };
  const before = linearMemories(envoyPid);
  for (let tenth = 0; tenth < 10; tenth++) {
    signal.throwIfAborted();
    await send(tenth < BODIES ? 'filterBody2k' : 'filter', requests / 10);
  }
  const after = linearMemories(envoyPid);
  const growth = sum(after) - sum(before);
  return `Envoy's VMs after ${requests} more requests: ${kib(after)} KiB, growth ${growth} bytes`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function kib(bytes: readonly number[]): string {
  return bytes.map((value) => value / 1024).join(' + ');
}
