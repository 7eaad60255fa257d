#[glommio::main]
const async unsafe extern "C" fn main<T>(argument: T)
where
    T: Copy,
{
}
