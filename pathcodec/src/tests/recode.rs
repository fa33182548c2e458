//! Re-coding segments and reading them is the identity.

use super::*;
use crate::logistic::{odds_of, probability_of, LIMIT};
use crate::predictor::MEMORY_WORDS;
use crate::range_coder::{BitCoder, Decoder, Encoder, PROBABILITY_BITS};
use crate::recode::{decode, encode, Reading, Segment, Start};

/// Everything that a walk needs to begin somewhere.
struct State {
    blocks: Vec<Block>,
    addresses: Vec<u64>,
    numbers: Vec<u32>,
    n_open: usize,
    forgotten: u64,
    block: u32,
    position: Position,
    next_event: usize,
}

impl State {
    fn first(folded: &Folded) -> State {
        State {
            blocks: folded.blocks.clone(),
            addresses: vec![0; folded.depth],
            numbers: vec![0; folded.depth],
            n_open: 0,
            forgotten: 0,
            block: folded.path[0],
            position: Position::default(),
            next_event: 0,
        }
    }

    fn of(walker: &Walker, depth: usize) -> State {
        let (open_addresses, open_numbers) = walker.stack().open();
        let (mut addresses, mut numbers) = (open_addresses.to_vec(), open_numbers.to_vec());
        addresses.resize(depth, 0);
        numbers.resize(depth, 0);
        State {
            blocks: walker.code().blocks().to_vec(),
            addresses,
            numbers,
            n_open: open_numbers.len(),
            forgotten: walker.stack().forgotten(),
            block: walker.block(),
            position: walker.position(),
            next_event: walker.next_event(),
        }
    }

    fn walker<'a>(&'a mut self, folded: &'a Folded) -> Walker<'a> {
        let path = Path {
            start: self.position,
            surprises: &folded.surprises[self.position.surprise_bytes as usize..],
            symbols: &folded.symbols[self.position.symbol_bytes as usize..],
            events: &folded.events[self.next_event..],
            decisions: folded.decisions,
        };
        let code = Code::new(&mut self.blocks, &folded.targets).unwrap();
        let stack = ShadowStack::restore(&mut self.addresses, &mut self.numbers, self.n_open, self.forgotten);
        Walker::new(code, path, stack, self.block)
    }

    /// What decoding from here makes of these bytes.
    fn decode(
        &mut self,
        folded: &Folded,
        words: &mut [u32],
        coded: &[u8],
        n_blocks: u64,
    ) -> Result<(Position, Vec<u8>, Vec<u8>), Stop> {
        let before = self.position;
        let (mut surprises, mut symbols) = (vec![0; folded.surprises.len()], vec![0; folded.symbols.len()]);
        let (block, position, events) = (self.block, self.position, &folded.events[self.next_event..]);
        let code = Code::new(&mut self.blocks, &folded.targets).unwrap();
        let stack = ShadowStack::restore(&mut self.addresses, &mut self.numbers, self.n_open, self.forgotten);
        let start = Start { code, events, stack, block, position };
        let reading = Reading { coded, words, surprises: &mut surprises, symbols: &mut symbols };
        let after = decode(start, n_blocks, reading)?;
        surprises.truncate((after.surprise_bytes - before.surprise_bytes) as usize);
        symbols.truncate((after.symbol_bytes - before.symbol_bytes) as usize);
        Ok((after, surprises, symbols))
    }
}

/// Encodes the first segment of a random path; the words need not be the same for both sides.
fn encode_first(folded: &Folded, room: &mut [u8]) -> Option<Segment> {
    let mut state = State::first(folded);
    let walker = state.walker(folded);
    encode(walker, u64::MAX, &mut vec![1; MEMORY_WORDS], room).1
}

#[test]
fn reading_segments_cut_anywhere_is_the_identity() {
    let (mut words, mut other_words) = (vec![7; MEMORY_WORDS], vec![9; MEMORY_WORDS]);
    let mut room = vec![0; 1 << 16];
    for seed in 1..400 {
        let mut random = Random(seed * 0x9e37_79b9 + 11);
        let folded = Folded::new(&mut random, 2000);
        let mut first = State::first(&folded);
        let mut walker = first.walker(&folded);
        let (mut surprises, mut symbols, mut n_blocks) = (Vec::new(), Vec::new(), 0);
        let most = 1 + random.below(600);
        loop {
            let mut state = State::of(&walker, folded.depth);
            let segment;
            (walker, segment) = encode(walker, 1 + random.below(most), &mut words, &mut room);
            let segment = segment.unwrap();
            let coded = &room[..segment.n_bytes];
            let found = state.decode(&folded, &mut other_words, coded, segment.n_blocks).unwrap();
            assert_eq!(found.0, walker.position(), "seed {seed}");
            surprises.extend(found.1);
            symbols.extend(found.2);
            n_blocks += segment.n_blocks;
            if let Some(stop) = segment.stop {
                assert_eq!(stop, Stop::End, "seed {seed}");
                break;
            }
        }
        assert_eq!(walker.position().decisions, folded.decisions, "seed {seed}");
        assert_eq!((surprises, symbols), (folded.surprises, folded.symbols), "seed {seed}");
        assert_eq!(n_blocks, folded.path.len() as u64, "seed {seed}");
    }
}

#[test]
fn a_path_that_was_cut_off_is_read_as_far_as_it_goes() {
    let (mut words, mut room) = (vec![0; MEMORY_WORDS], vec![0; 1 << 16]);
    for seed in 1..200 {
        let mut random = Random(seed * 0x9e37_79b9 + 13);
        let mut folded = Folded::new(&mut random, 400);
        let at = random.below(folded.surprises.len() as u64 + 1) as usize;
        folded.surprises.truncate(at);
        folded.decisions = 0;
        let mut first = State::first(&folded);
        let (walker, segment) = encode(first.walker(&folded), u64::MAX, &mut words, &mut room);
        let (segment, end) = (segment.unwrap(), walker.position());
        assert!(segment.stop.is_some());
        let found = State::first(&folded).decode(&folded, &mut words, &room[..segment.n_bytes], segment.n_blocks);
        let (position, surprises, symbols) = found.unwrap();
        assert_eq!(position, end, "seed {seed}");
        assert_eq!(surprises, folded.surprises[..end.surprise_bytes as usize], "seed {seed}");
        assert_eq!(symbols, folded.symbols[..end.symbol_bytes as usize], "seed {seed}");
    }
}

#[test]
fn without_room_there_is_no_segment_and_with_little_a_short_one() {
    let folded = (1..).map(|seed| Folded::new(&mut Random(seed * 0x9e37_79b9 + 15), 3000));
    let folded = folded
        .filter(|folded| encode_first(folded, &mut [0; 1 << 12]).is_some_and(|segment| segment.n_bytes > 100))
        .take(10);
    for folded in folded {
        let mut words = vec![0; MEMORY_WORDS];
        assert_eq!(encode_first(&folded, &mut []), None);
        assert_eq!(encode_first(&folded, &mut [0; 16]), None);
        let mut first = State::first(&folded);
        let (walker, segment) = encode(first.walker(&folded), 100, &mut words[1..], &mut [0; 1000]);
        assert_eq!((segment, walker.position()), (None, Position::default()));
        let mut room = [0; 70];
        let segment = encode_first(&folded, &mut room).unwrap();
        assert_eq!(segment.stop, None);
        let found = State::first(&folded).decode(&folded, &mut words, &room[..segment.n_bytes], segment.n_blocks);
        assert!(folded.surprises.starts_with(&found.unwrap().1));
    }
}

#[test]
fn nothing_makes_reading_panic_or_go_on_for_ever() {
    let mut words = vec![0; MEMORY_WORDS];
    for seed in 1..600 {
        let mut random = Random(seed * 0x9e37_79b9 + 17);
        let mut folded = Folded::new(&mut random, 300);
        let mut coded = vec![0; 1 << 13];
        let segment = encode_first(&folded, &mut coded).unwrap();
        coded.truncate(segment.n_bytes);
        let mut state = State::first(&folded);
        for _ in 0..1 + random.below(8) {
            let place = random.below(1 << 20) as usize;
            match random.below(6) {
                0 => coded = (0..random.below(100)).map(|_| random.below(256) as u8).collect(),
                1 if !coded.is_empty() => {
                    let place = place % coded.len();
                    coded[place] = random.below(256) as u8;
                }
                2 => {
                    let place = place % folded.events.len();
                    folded.events[place].value = random.below(1 << 32) as u32;
                    folded.events[place].action = random.below(7) as u8;
                }
                3 => {
                    let place = place % state.blocks.len();
                    state.blocks[place].target = random.below(1 << 32) as u32;
                    state.blocks[place].n_targets = random.below(1 << 32) as u32;
                    state.blocks[place].first_target = random.below(1 << 32) as u32;
                }
                4 => state.position.decisions = u64::MAX - random.below(20),
                _ => folded.surprises.truncate(place % 10),
            }
        }
        if Code::new(&mut state.blocks.clone(), &folded.targets).is_some() {
            // Never more steps than asked for, whatever the result.
            let _ = state.decode(&folded, &mut words, &coded, 5000);
        }
    }
}

#[test]
fn streams_that_are_longer_than_they_need_to_be_contradict_the_path() {
    let mut words = vec![0; MEMORY_WORDS];
    let folded = (1..).map(|seed| Folded::new(&mut Random(seed * 0x9e37_79b9 + 19), 400));
    for mut folded in folded.filter(|folded| folded.surprises.len() > 3).take(20) {
        let (decisions, size) = read_surprise(&folded.surprises).unwrap();
        let long: Vec<u8> = [0].into_iter().chain(decisions.to_le_bytes()).collect();
        folded.surprises.splice(..size, long);
        // Events lie elsewhere now.
        folded.events.clear();
        let mut first = State::first(&folded);
        let (walker, segment) = encode(first.walker(&folded), u64::MAX, &mut words, &mut [0; 1000]);
        assert_eq!((segment.unwrap().stop, walker.position().surprise_bytes), (Some(Stop::Damaged), 0));
    }
}

/// FNV-1a.
fn fold_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn the_coded_form_is_the_same_everywhere_and_ever() {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for seed in 1..60 {
        let folded = Folded::with_returns(&mut Random(seed * 0x9e37_79b9 + 21), 3000, 0);
        let mut room = vec![0; 1 << 14];
        let segment = encode_first(&folded, &mut room).unwrap();
        hash = fold_bytes(hash, &room[..segment.n_bytes]);
    }
    // Another number here is another format.
    assert_eq!(hash, 0x71fb_d0f5_87f2_f938, "{hash:#x}");
}

#[test]
fn bits_of_any_probability_are_read_as_written() {
    for seed in 1..300 {
        let mut random = Random(seed * 0x9e37_79b9 + 23);
        let bits: Vec<(bool, u32)> = (0..random.below(3000))
            .map(|_| {
                let probability = match random.below(4) {
                    0 => 0,
                    1 => 1 << PROBABILITY_BITS,
                    2 => random.below(1 << PROBABILITY_BITS) as u32,
                    _ => 1 << random.below(u64::from(PROBABILITY_BITS)),
                };
                // Mostly what is likely: so that carries run far.
                let is_likely = random.below(1 << PROBABILITY_BITS) < u64::from(probability);
                (is_likely ^ (random.below(50) == 0), probability)
            })
            .collect();
        let mut room = vec![0; 1 << 14];
        let mut encoder = Encoder::new(&mut room);
        for (bit, probability) in &bits {
            encoder.code(*bit, *probability);
        }
        let size = encoder.finish().unwrap();
        let mut decoder = Decoder::new(&room[..size]);
        for (bit, probability) in &bits {
            assert_eq!(decoder.code(false, *probability), *bit, "seed {seed}");
        }
    }
}

#[test]
fn odds_and_probabilities_rise_together() {
    let mut last = 0;
    for odds in -LIMIT..=LIMIT {
        let probability = probability_of(odds);
        assert!(probability >= last.max(1) && probability < 1 << PROBABILITY_BITS);
        if odds % 4 == 0 {
            assert_eq!(probability + probability_of(-odds), 1 << PROBABILITY_BITS);
        }
        last = probability;
        if probability > 1 << 14 && probability < (1 << PROBABILITY_BITS) - (1 << 14) {
            assert!((odds_of(probability) - odds).abs() < 20, "{odds}");
        }
    }
    // e^8 to 1
    assert_eq!(probability_of(8 * 256), ((1u64 << PROBABILITY_BITS) as f64 / (1.0 + (-8f64).exp())) as u32);
    assert_eq!(probability_of(i32::MAX), probability_of(LIMIT));
}
