import { describe, expect, it } from 'vitest';
import { frontendOf } from './node-metadata.js';

const frontends = [
  { id: 'east', region: 'eastus', listen: '' },
  { id: 'west-1', region: 'westeurope', listen: '' },
  { id: 'west-2', region: 'westeurope', listen: '' },
];
const node = {
  id: 'n1',
  cluster: '',
  region: '',
  metadata: {},
  userAgent: '',
  userAgentVersion: '',
};

describe('the frontend of a node', () => {
  it('is the one that its metadata names', () => {
    const metadata = { wardrop: { frontend: 'west-2' } };
    expect(frontendOf({ ...node, cluster: 'east', metadata }, frontends)).toBe('west-2');
  });

  it('is else the one that its cluster is called', () => {
    expect(frontendOf({ ...node, cluster: 'west-1', region: 'eastus' }, frontends)).toBe('west-1');
  });

  it('is else the only one in its region', () => {
    expect(frontendOf({ ...node, region: 'eastus' }, frontends)).toBe('east');
    expect(frontendOf({ ...node, region: 'westeurope' }, frontends)).toMatchObject({
      code: 'WARDROP_NODE_UNKNOWN',
    });
  });

  it('is an error that names what was said and what is known when nothing fits', () => {
    const error = frontendOf({ ...node, metadata: { wardrop: { frontend: 'north' } } }, frontends);
    expect(error).toMatchObject({ code: 'WARDROP_NODE_UNKNOWN' });
    expect((error as Error).message).toContain('"north"');
    expect((error as Error).message).toContain('east, west-1, west-2');
  });

  it.each(['8080', '10.0.0.1:99999', ':80', 'localhost:1', '::1:80'])(
    'is an error when it says that it listens at %j',
    (listen) => {
      const metadata = { wardrop: { frontend: 'east', listen } };
      expect(frontendOf({ ...node, metadata }, frontends)).toMatchObject({
        message: expect.stringContaining('metadata.wardrop.listen: '),
      });
    },
  );
});
