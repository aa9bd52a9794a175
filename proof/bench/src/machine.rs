//! The machine, in one line.

/// Processor, cores, memory and kernel, as far as the system tells.
#[must_use]
pub fn line() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(n, _)| n.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let processor = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let gigabytes = memory.split(' ').next().and_then(|kb| kb.parse::<f64>().ok()).map(|kb| kb / 1024.0 / 1024.0);
    let memory = gigabytes.map(|gb| format!(", {gb:.0} GiB of memory")).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{processor}, {cores} cores{memory}, {} {}", std::env::consts::OS, kernel.trim())
}
