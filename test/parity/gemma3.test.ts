import { parityOf } from './parity.ts';

parityOf('gemma3');
