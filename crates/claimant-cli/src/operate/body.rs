//! Bodies of messages from files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use claimant_aws::sqs::MESSAGE_MAX_BYTES;
use claimant_core::Error;
use claimant_operate::dead::is_saved;
use claimant_operate::send::NUMBER;

/// Reads the text in a file, or of standard input where it is `-`, which may have no end.
///
/// # Errors
/// When it cannot be read, is no text, or is longer than a message can be.
pub(crate) fn read(file: &Path) -> Result<String, Error> {
    let shown = file.display();
    let failed = |e: io::Error| Error::invalid(format!("{shown} cannot be read as text")).caused_by(e);
    let mut bytes = Vec::new();
    let max = MESSAGE_MAX_BYTES as u64;
    if file.as_os_str() == "-" {
        io::stdin().lock().take(max + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        File::open(file).and_then(|file| file.take(max + 1).read_to_end(&mut bytes)).map_err(failed)?;
    }
    // Of one that is too long, a character may be cut.
    let begins = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if is_saved(begins) {
        return Err(Error::invalid(format!(
            "{shown} has dead letters, one a line, as `claimant dead discard --save` writes them, and is no message: send the body of each, such as \
             by `head -n 1 FILE | jq -j .body | claimant send QUEUE --file - --number '{NUMBER}' --yes`, its message_group with --group, \
             its attributes with --attribute. What only looks so is sent with `claimant send --body TEXT`"
        )));
    }
    if bytes.len() > MESSAGE_MAX_BYTES {
        return Err(Error::invalid(format!("{shown} has more than {MESSAGE_MAX_BYTES} bytes, and SQS takes no more")));
    }
    String::from_utf8(bytes).map_err(|e| failed(io::Error::new(io::ErrorKind::InvalidData, e.utf8_error())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_not_read_to_its_end() {
        let why = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(why, "/dev/zero has more than 1048576 bytes, and SQS takes no more");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("body");
        let full = "x".repeat(MESSAGE_MAX_BYTES);
        let letter = r#"{"message_id": "m", "origin": "sent", "body": "b", "body_bytes": 1}"#;
        for (text, says) in [
            (full.as_bytes(), None),
            (format!("{letter}\n{full}").as_bytes(), Some("has dead letters")),
            (b"a\xff", Some("cannot be read as text")),
        ] {
            std::fs::write(&path, text).unwrap();
            let came = read(&path);
            match says {
                None => assert_eq!(came.unwrap().len(), text.len()),
                Some(says) => assert!(came.unwrap_err().to_string().contains(says)),
            }
        }
    }
}
