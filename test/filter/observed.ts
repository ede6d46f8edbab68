import { filterModule } from '../../simulator/filter-host/build.js';
import { type Headers, Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import type { EngineUsage } from '../../wire/usage-report.js';
import { reportOf } from './reported.js';
import { deliver, sketch } from './snapshots.js';

// Requests to the model `m`, and what an engine answers.

const module = filterModule();

export const SSE: Headers = [['content-type', 'text/event-stream; charset=utf-8']];
export const JSON_BODY: Headers = [['content-type', 'application/json']];
export const bodyOf = (request: object) => JSON.stringify({ model: 'm', ...request });

export function started(engines = [{ weight: 1 }]): Vm {
  const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true });
  deliver(vm, sketch(engines));
  return vm;
}

/** A request whose headers give its key, and with a body also its model. */
export function ask(vm: Vm, body?: object): Stream {
  if (body === undefined) return vm.request({ 'x-wardrop-model': 'm', 'x-session-id': 'a' });
  return vm.request({ 'x-session-id': 'a', 'content-type': 'application/json' }).send(bodyOf(body), true);
}

export function engineOf(vm: Vm): EngineUsage {
  return reportOf(vm).engines[0]!;
}

export const event = (data: object | string) =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
export const token = event({ choices: [{ delta: { content: 'x' } }] });
export const usage = (prompt: number, output: number, cached?: number) => ({
  usage: {
    prompt_tokens: prompt,
    total_tokens: prompt + output,
    completion_tokens: output,
    prompt_tokens_details: cached === undefined ? null : { cached_tokens: cached },
  },
});
