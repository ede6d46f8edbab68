import { describe, expect, it } from 'vitest';
import { Host } from '../../simulator/filter-host/host.js';

describe('the filter configuration', () => {
  it('is accepted with every option', () => {
    const host = new Host();
    const vm = host.startVm({
      frontendId: 'west',
      syncToken: 'sesame=1',
      syncPeriodMs: 250,
      startupHoldMs: 0,
      tenantHeader: 'x-tenant',
      readBodies: true,
      maxBodyBytes: 1 << 20,
      nativeSteering: false,
      routeRetries: 2,
      keyHeaders: ['x-mine', 'x-session-id'],
      keyFields: ['user'],
      prefixKeyBytes: 1024,
      observe: false,
    });
    expect(vm.tickPeriodMs).toBe(250);
    vm.tick();
    expect(vm.call?.headers).toContainEqual(['authorization', 'Bearer sesame=1']);
    expect(vm.call?.headers).toContainEqual(['x-wardrop-frontend', 'west']);
    expect(vm.call?.headers).toContainEqual(['x-wardrop-node', 'envoy-1']);
    expect(vm.call?.headers).toContainEqual(['x-wardrop-snapshot', '0']);
  });

  it.each([
    ['', 'frontendId is missing'],
    ['syncPeriodMs=100\n', 'frontendId is missing'],
    ['frontendId=west\nfrontend\n', 'line 2: must be name=value'],
    ['frontendId=west\n\ncolour=red\n', 'line 3: no option has this name: colour'],
    [
      'frontendId=we st\n',
      'line 1: a value is missing, too long or has characters that are not allowed: frontendId',
    ],
    [
      'frontendId=\n',
      'line 1: a value is missing, too long or has characters that are not allowed: frontendId',
    ],
    [`frontendId=west\nsyncToken=${'x'.repeat(4097)}`, 'line 2: a value is missing, too long'],
    ['frontendId=west\nsyncPeriodMs=9', 'line 2: must be a whole number in range: syncPeriodMs'],
    ['frontendId=west\nsyncPeriodMs=1e3', 'line 2: must be a whole number in range: syncPeriodMs'],
    ['frontendId=west\nstartupHoldMs=-1', 'line 2: must be a whole number in range: startupHoldMs'],
    ['frontendId=west\nstartupHoldMs=99999999999', 'line 2: must be a whole number in range: startupHoldMs'],
    ['frontendId=west\ntenantHeader=X-Tenant', 'line 2: a value is missing, too long'],
    ['frontendId=west\nreadBodies=yes', 'line 2: must be true or false: readBodies'],
    ['frontendId=west\nnativeSteering=1', 'line 2: must be true or false: nativeSteering'],
    ['frontendId=west\nrouteRetries=11', 'line 2: must be a whole number in range: routeRetries'],
    ['frontendId=west\nmaxBodyBytes=100', 'line 2: must be a whole number in range: maxBodyBytes'],
    ['frontendId=west\nobserve=on', 'line 2: must be true or false: observe'],
    ['frontendId=west\nkeyHeaders=x-mine,,x-other', 'line 2: a value is missing, too long or has characters'],
    [
      `frontendId=west\nkeyHeaders=${Array(17).fill('x-mine').join()}`,
      'line 2: a value is missing, too long',
    ],
    ['frontendId=west\nkeyFields=user,usr', 'line 2: a value is missing, too long or has characters'],
    ['frontendId=west\nprefixKeyBytes=65537', 'line 2: must be a whole number in range: prefixKeyBytes'],
    ['frontendId=west\nsnapshot=', 'line 2: a value is missing, too long or has characters'],
    ['frontendId=west\nsnapshot=QUJDR', 'line 2: a value is missing, too long or has characters'],
    ['frontendId=west\nsnapshot=QU=D', 'line 2: a value is missing, too long or has characters'],
    [
      'frontendId=west\nsnapshot=QUJD',
      'snapshot refused, the one in force stays: it is shorter than its header',
    ],
  ])('is refused with a log line that says where and why: %j', (configuration, complaint) => {
    const host = new Host();
    expect(() => host.startVm(configuration)).toThrow('configuration refused');
    expect(host.logs).toHaveLength(1);
    expect(host.logs[0]).toContain(complaint);
  });
});
