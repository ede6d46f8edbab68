import type { Vm } from '../../simulator/filter-host/host.js';
import type { VmUsage } from '../../wire/usage-report.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';

/** What a VM reports of itself a second from now, with all that it has been told answered. */
export function reportOf(vm: Vm): VmUsage {
  vm.tick();
  vm.host.nowMs += 1_000;
  if (vm.call) vm.answer(304);
  else vm.tick();
  return decodeUsageReport(vm.call!.body).vms[0]!;
}
