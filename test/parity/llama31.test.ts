import { parityOf } from './parity.ts';

parityOf('llama31');
