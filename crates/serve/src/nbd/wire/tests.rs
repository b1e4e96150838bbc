//! Tests that encoded messages decode to the same, and that no bytes make decoding panic.

use proptest::prelude::*;

use super::*;

#[test]
fn messages_come_back_as_they_went() {
    let hello = ServerHello { flags: HandshakeFlags::FIXED_NEWSTYLE.with(HandshakeFlags::NO_ZEROES) };
    assert_eq!(ServerHello::decode(&hello.encode()), Ok(hello));
    let request = RequestHeader {
        flags: CommandFlags::FUA,
        command: Command::WRITE,
        cookie: Cookie(0x0102_0304_0506_0708),
        offset: 1 << 40,
        length: 4096,
    };
    assert_eq!(RequestHeader::decode(&request.encode()), Ok(request));
    let go = GoRequest { name: "disk".to_owned(), wants: vec![InfoKind::BLOCK_SIZE, InfoKind(77)] };
    assert_eq!(GoRequest::decode(&go.encode()), Ok(go));
    let contexts = MetaContextRequest { export: "disk".to_owned(), queries: vec!["base:".to_owned()] };
    assert_eq!(MetaContextRequest::decode(&contexts.encode()), Ok(contexts));
    for info in [
        Info::Export { size: u64::MAX, flags: TransmissionFlags::HAS_FLAGS },
        Info::Name("disk".to_owned()),
        Info::Description(String::new()),
        Info::BlockSize { minimum: 512, preferred: 4096, maximum: PAYLOAD_MAX_BYTES },
        Info::Other(InfoKind(9)),
    ] {
        assert_eq!(Info::decode(&info.encode()), Ok(info));
    }
    let entry = ServerEntry { name: "a".to_owned(), description: "b".to_owned() };
    assert_eq!(ServerEntry::decode(&entry.encode()), Ok(entry));
    let context = MetaContext { id: 7, name: BASE_ALLOCATION.to_owned() };
    assert_eq!(MetaContext::decode(&context.encode()), Ok(context));
}

#[test]
fn replies_come_back_as_they_went() {
    let cookie = Cookie(9);
    let simple = SimpleReply { errno: WireErrno::EIO, cookie };
    assert_eq!(ReplyHead::decode(&simple.encode()), Ok(Some((ReplyHead::Simple(simple), 16))));
    assert_eq!(ReplyHead::decode(&simple.encode()[..15]), Ok(None));
    let error = ErrorChunk { errno: WireErrno::EINVAL, message: "off the grid".to_owned(), offset: Some(5) };
    let bytes = encode_error_chunk(cookie, &error);
    let Ok(Some((ReplyHead::Chunk(header), taken))) = ReplyHead::decode(&bytes) else { panic!("{bytes:?}") };
    assert!(header.is_last && header.kind == ChunkKind::ERROR_OFFSET);
    assert_eq!(header.length as usize, bytes.len() - taken);
    assert_eq!(Chunk::decode(header.kind, &bytes[taken..]), Ok(Chunk::Error(error)));
    let status = BlockStatus { context: 1, descriptors: vec![BlockDescriptor { length: 512, flags: 3 }] };
    let bytes = status.encode(cookie);
    assert_eq!(Chunk::decode(ChunkKind::BLOCK_STATUS, &bytes[20..]), Ok(Chunk::Status(status)));
    let data = ChunkHeader::encode_offset_data(cookie, 4096, 512, true);
    let Ok(Some((ReplyHead::Chunk(header), _))) = ReplyHead::decode(&data) else { panic!("{data:?}") };
    assert_eq!((header.length, header.kind), (520, ChunkKind::OFFSET_DATA));
}

#[test]
fn unknown_error_numbers_do_not_pass_for_success() {
    assert_eq!(WireErrno::NONE.to_errno(), None);
    assert_eq!(WireErrno(4242).to_errno(), Some(plumb_block::Errno::EINVAL));
    for number in 1..200 {
        assert_ne!(WireErrno::from_errno(plumb_block::Errno(number)), WireErrno::NONE, "errno {number}");
    }
}

proptest! {
    #[test]
    fn decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64), kind in any::<u16>()) {
        let mut outcomes = vec![
            Info::decode(&bytes).is_ok(),
            GoRequest::decode(&bytes).is_ok(),
            MetaContextRequest::decode(&bytes).is_ok(),
            MetaContext::decode(&bytes).is_ok(),
            ServerEntry::decode(&bytes).is_ok(),
            Chunk::decode(ChunkKind(kind), &bytes).is_ok(),
            ReplyHead::decode(&bytes).is_ok(),
        ];
        if let Some(head) = bytes.first_chunk() {
            outcomes.push(RequestHeader::decode(head).is_ok());
        }
        if let Some(head) = bytes.first_chunk() {
            outcomes.push(OptionReplyHeader::decode(head).is_ok());
        }
        prop_assert!(outcomes.len() >= 7);
    }

    #[test]
    fn lengths_that_lie_are_refused(claimed in 8_u32.., rest in prop::collection::vec(any::<u8>(), 0..8)) {
        let bytes = [&claimed.to_be_bytes(), rest.as_slice()].concat();
        prop_assert!(GoRequest::decode(&bytes).is_err());
        prop_assert!(MetaContextRequest::decode(&bytes).is_err());
        prop_assert!(ServerEntry::decode(&bytes).is_err());
    }
}
