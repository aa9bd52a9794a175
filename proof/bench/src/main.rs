//! `make bench`.

fn main() -> std::process::ExitCode {
    claimant_bench::main()
}
