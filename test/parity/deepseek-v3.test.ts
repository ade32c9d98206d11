import { parityOf } from './parity.ts';

parityOf('deepseek_v3');
