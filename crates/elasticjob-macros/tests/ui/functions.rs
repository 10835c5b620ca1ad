use elasticjob_macros::job;

struct Shard;

#[job(shards = 2)]
fn plain(_: Shard) -> Result<(), String> {
    Ok(())
}

#[job(blocking)]
async fn both(_: Shard) -> Result<(), String> {
    Ok(())
}

#[job]
async fn nothing_in() -> Result<(), String> {
    Ok(())
}

#[job]
async fn two_in(_: Shard, _: u32) -> Result<(), String> {
    Ok(())
}

#[job]
async fn borrowed(_: &Shard) -> Result<(), String> {
    Ok(())
}

#[job]
async fn nothing_out(_: Shard) {}

#[job]
async fn generic<T>(_: Shard) -> Result<(), T> {
    Ok(())
}

#[job]
async unsafe extern "C" fn foreign(_: Shard) -> Result<(), String> {
    Ok(())
}

impl Shard {
    #[job]
    async fn method(self) -> Result<(), String> {
        Ok(())
    }
}

#[job]
struct NotAFunction;

fn main() {
    // The function exists even if the attribute has errors.
    let _ = plain(Shard);
}
