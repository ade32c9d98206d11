import { parityOf } from './parity.ts';

parityOf('gptoss');
