import type { FilterRun } from '../../xds-server/control/questions/filter-run.js';
import { Host } from './host.js';
import type { Headers } from './pairs.js';

/** What asks the compiled filter about one request at a time, each in a VM of its own. */
export function filterRun(wasmModule: Uint8Array): FilterRun {
  let module: WebAssembly.Module | undefined;
  return (filter, snapshot, { method, path, headers, body }) => {
    module ??= new WebAssembly.Module(wasmModule);
    const host = new Host(module);
    host.nowMs = Date.now();
    const vm = host.startVm(filter);
    vm.tick();
    vm.answer(200, snapshot);
    const sent: Headers = [
      [':method', method],
      [':path', path],
      ...headers.map(([name, value]): [string, string] => [name, value]),
    ];
    const stream = vm.request(sent, { ended: body.length === 0 });
    if (body.length > 0 && stream.reply === undefined) stream.send(body, true);
    const { reply } = stream;
    if (reply !== undefined) return { decision: stream.decision, requestHeaders: new Map(headers), reply };
    if (!stream.forwarded) throw new Error(`the filter refuses its snapshot: ${host.logs.at(-1)}`);
    const requestHeaders = new Map(stream.requestHeaders);
    return { decision: stream.respond(200).decision, requestHeaders };
  };
}
