export { death } from './death.ts';
export { endWithParent } from './parent-watch.ts';
export { freePorts, LOOPBACK, PortBusy, requireFreePort } from './ports.ts';
export type { Notice, ProcessSpec, Ready } from './spec.ts';
export { ProcessFailed, type Supervised, Supervisor } from './supervisor.ts';
export { DEV_SERVER_TUNING, type DevServerOptions, devServer } from './temporal-server.ts';
